const VENDOR_HOST = /^generativelanguage\.googleapis\.com\.?$/i

/**
 * Is it the address of a file that is kept at the vendor (Gemini API, "Files API":
 * `https://generativelanguage.googleapis.com/v1beta/files/…`)? The vendor opens it by the operator's key, and its owner is not known here.
 */
export function isVendorFile(url: string): boolean {
  return URL.canParse(url) && VENDOR_HOST.test(new URL(url).hostname)
}
