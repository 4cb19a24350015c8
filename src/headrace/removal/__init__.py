"""Taking marks off pictures and documents."""
