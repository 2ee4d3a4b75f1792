const VENDOR_HOST = /^generativelanguage\.googleapis\.com\.?$/i

/**
 * Whether a URL names a file at the vendor (Gemini API, "Files API": `https://generativelanguage.googleapis.com/v1beta/files/…`).
 * The vendor opens it with the operator's key, and its owner is unknown here.
 */
export function isVendorFile(url: string): boolean {
  return URL.canParse(url) && VENDOR_HOST.test(new URL(url).hostname)
}
