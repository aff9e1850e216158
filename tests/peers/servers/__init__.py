"""Small servers, each written with an SDK that a server in the field may use."""
