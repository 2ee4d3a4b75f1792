/** Names of a key's limits, as the limiters know them. */
export interface BucketNames {
  readonly requests: string
  readonly tokens: string
  readonly concurrency: string
}

/** Most keys whose names are kept; as many as `keyAuthentication` keeps. */
export const MAX_KEPT_NAMES = 10_000

/** Joined anew for each request, a name would be copied and hashed by each limiter. By key id, which is no secret. */
const kept = new Map<string, BucketNames>()

/** The names for a key, by its id. */
export function bucketNames(keyId: string): BucketNames {
  const known = kept.get(keyId)
  if (known !== undefined) return known
  const names = { requests: `requests:${keyId}`, tokens: `tokens:${keyId}`, concurrency: `concurrency:${keyId}` }
  if (kept.size >= MAX_KEPT_NAMES) kept.clear()
  kept.set(keyId, names)
  return names
}
