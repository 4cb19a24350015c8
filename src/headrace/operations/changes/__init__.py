"""What has changed a moment ago, told to the operators who look on."""
