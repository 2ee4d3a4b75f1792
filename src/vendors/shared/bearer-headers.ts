/**
 * Headers of a JSON POST with a bearer key, as a flat list. Answers are asked for uncompressed: they are passed on and read
 * as they are. An empty key sends no credential, for servers that want none.
 *
 * The list is made once for each of the operator's keys: a text that is joined anew for each call is copied and checked from
 * new memory each time.
 */
export function bearerHeaders(
  apiKey: string,
  accept: 'application/json' | 'text/event-stream' | '*/*',
): readonly string[] {
  const kept = KEPT[accept]
  const known = kept.get(apiKey)
  if (known !== undefined) return known
  const headers = ['content-type', 'application/json', 'accept', accept, 'accept-encoding', 'identity']
  if (apiKey !== '') headers.push('authorization', `Bearer ${apiKey}`)
  // Where keys are rotated for ever, those of the past make room for those of today.
  if (kept.size >= MAX_KEPT_KEYS) kept.clear()
  kept.set(apiKey, headers)
  return headers
}

/** Most keys of vendors whose headers are kept. */
export const MAX_KEPT_KEYS = 1_000

/** By the accepted type. */
const KEPT = {
  'application/json': new Map<string, readonly string[]>(),
  'text/event-stream': new Map<string, readonly string[]>(),
  '*/*': new Map<string, readonly string[]>(),
}
