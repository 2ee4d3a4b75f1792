/** Names of one caller's limits, as the limiters know them. */
export interface BucketNames {
  readonly requests: string
  readonly tokens: string
  readonly concurrency: string
}

/** Whose limits they are. */
export type LimitOwner = 'key' | 'account' | 'user'

/** Most names kept for each kind of owner; as many as `keyAuthentication` keeps. */
export const MAX_KEPT_NAMES = 10_000

interface KeptNames {
  readonly accountId: string
  readonly names: BucketNames
}

/** Joined anew for each request, a name would be copied and hashed by each limiter. */
const kept: Readonly<Record<LimitOwner, Map<string, KeptNames>>> = {
  key: new Map(),
  account: new Map(),
  user: new Map(),
}

/**
 * The names for a key, an account or an end user. All names of an account begin with it up to the first slash, so that shared
 * limiters keep them together and take from all of them in one step.
 *
 * @param id of the key, the account, or the end user (a digest of what it is called).
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
