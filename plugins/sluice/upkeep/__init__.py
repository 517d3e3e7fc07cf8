"""What people do afterwards."""
