"""A stand-in for Google Workspace: consent, Drive, Gmail and Calendar, as `vendors.md` B describes them."""
