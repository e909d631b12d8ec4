"""What a posterior says of new rows."""
