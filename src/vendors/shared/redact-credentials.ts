const REDACTED = '[redacted]'

// Vendors repeat keys in error texts, whole or masked in the middle ("sk-abcd****wxyz").
const CREDENTIAL_PATTERNS: readonly RegExp[] = [
  /\bBearer\s+[^\s"',;]+/gi,
  /\bsk-[\w*.-]{6,}/g,
  /\b(?:pa|al|st)-[\w*.-]{16,}/g,
  // Tokens that expire are in no list of keys: Google's, JSON Web Tokens, Bedrock's keys, and AWS's text of a signed request.
  /\bya29\.[\w.-]+/g,
  /\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}/g,
  /\bbedrock-api-key-[\w+/=-]+/g,
  /\bx-amz-security-token[:=]\s*[^\s"',;&]+/gi,
]

// Shorter values would also remove ordinary words.
const MIN_KEY_LENGTH = 8

/** Removes credentials from a vendor's text: the given keys anywhere, and anything that looks like a key. */
export function redactCredentials(text: string, apiKeys: readonly string[]): string {
  let clean = text
  for (const key of apiKeys) if (key.length >= MIN_KEY_LENGTH) clean = clean.replaceAll(key, REDACTED)
  for (const pattern of CREDENTIAL_PATTERNS) clean = clean.replace(pattern, REDACTED)
  return clean
}
