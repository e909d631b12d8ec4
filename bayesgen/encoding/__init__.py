"""Tables, texts and labels as users have them, to arrays and codes."""
