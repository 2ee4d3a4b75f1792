/** Names of one caller's limits in the limiters. */
export interface BucketNames {
  readonly requests: string
  readonly tokens: string
  readonly concurrency: string
}

/** Owner of limits. */
export type LimitOwner = 'key' | 'account' | 'user'

/** Maximum number of cached names per kind of owner; the same as in `keyAuthentication`. */
export const MAX_KEPT_NAMES = 10_000

interface KeptNames {
  readonly accountId: string
  readonly names: BucketNames
}

/** A name that is joined for each request would be copied and hashed by each limiter. */
const kept: Readonly<Record<LimitOwner, Map<string, KeptNames>>> = {
  key: new Map(),
  account: new Map(),
  user: new Map(),
}

/**
 * Returns the names for a key, an account or an end user. All names of an account have the same prefix up to the first slash, so
 * that shared limiters keep them together and take from all of them in one step.
 *
 * @param id Id of the key or the account, or a digest of the end user's name.
 */
export function bucketNames(accountId: string, owner: LimitOwner, id: string): BucketNames {
  const known = kept[owner].get(id)
  if (known?.accountId === accountId) return known.names
  const account = accountId.replaceAll('%', '%25').replaceAll('/', '%2F')
  const owned = owner === 'account' ? `${account}/account` : `${account}/${owner}:${id}`
  const names = { requests: `requests:${owned}`, tokens: `tokens:${owned}`, concurrency: `concurrency:${owned}` }
  if (kept[owner].size >= MAX_KEPT_NAMES) kept[owner].clear()
  kept[owner].set(id, { accountId, names })
  return names
}
