"""What families are made of: densities, statistics of rows, pieces of PyMC graphs."""
