type Accepted = 'application/json' | 'text/event-stream' | '*/*'

/** Headers of a JSON POST by key and kind of answer, as a flat list. */
export type KeyHeaders = (apiKey: string, accept: Accepted) => readonly string[]

/** Most keys of vendors whose headers are kept. */
export const MAX_KEPT_KEYS = 1_000

/**
 * Makes headers that carry a key in `name`, behind `prefix`. Answers are asked for uncompressed: they are passed on and read as
 * they are. An empty key sends no credential, for servers that want none.
 *
 * The list is made once for each of the operator's keys: a text that is joined anew for each call is copied and checked from
 * new memory each time.
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
    // Where keys are rotated for ever, those of the past make room for those of today.
    if (kept.size >= MAX_KEPT_KEYS) kept.clear()
    kept.set(apiKey, headers)
    return headers
  }
}

/** Headers with a bearer key. */
export const bearerHeaders: KeyHeaders = keyHeaders('authorization', 'Bearer ')
