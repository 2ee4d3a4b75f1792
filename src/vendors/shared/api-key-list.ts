/** The operator's keys as a list: blank ones removed, so that an unset environment variable means "not configured". */
export function apiKeyList(apiKey: string | readonly string[] | undefined): string[] {
  const keys = typeof apiKey === 'string' ? [apiKey] : (apiKey ?? [])
  return keys.map((key) => key.trim()).filter((key) => key !== '')
}
