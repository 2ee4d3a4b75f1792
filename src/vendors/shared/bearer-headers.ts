type Accepted = 'application/json' | 'text/event-stream' | '*/*'

/** Returns the headers of a JSON POST, by key and kind of answer, as a flat list. */
export type KeyHeaders = (apiKey: string, accept: Accepted) => readonly string[]

/** Maximum number of keys whose headers are cached. */
export const MAX_KEPT_KEYS = 1_000

/**
 * Creates headers that carry a key in `name`, after `prefix`. Answers are requested uncompressed, because they are passed on and
 * read unchanged. An empty key sends no credential.
 *
 * The list is created once per key: Node would copy and check a text that is joined again for each call.
 */
export function keyHeaders(name: string, prefix = ''): KeyHeaders {
  const byType: Readonly<Record<Accepted, Map<string, readonly string[]>>> = {
    'application/json': new Map(),
    'text/event-stream': new Map(),
    '*/*': new Map(),
  }
  return (apiKey, accept) => {
    const kept = byType[accept]
    const known = kept.get(apiKey)
    if (known !== undefined) return known
    const headers = ['content-type', 'application/json', 'accept', accept, 'accept-encoding', 'identity']
    if (apiKey !== '') headers.push(name, `${prefix}${apiKey}`)
    // With continuous key rotation, old keys must make room for new ones.
    if (kept.size >= MAX_KEPT_KEYS) kept.clear()
    kept.set(apiKey, headers)
    return headers
  }
}

/** Headers with a bearer key. */
export const bearerHeaders: KeyHeaders = keyHeaders('authorization', 'Bearer ')
