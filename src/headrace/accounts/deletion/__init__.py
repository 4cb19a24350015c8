"""The end of an account: asked for, undone, carried out. docs/why/deletion.md says why it goes as it does."""
