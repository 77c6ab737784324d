/* The code of a library that only forwards its exports. */
int DllMainCRTStartup(void *module, unsigned long reason, void *reserved) { return 1; }
