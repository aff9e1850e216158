"""What tests share: fakes, clients of each era, processes, waiting."""
