/** A header that keeps a caller's session together. */
const SESSION_HEADER = 'x-session-id'
/** Longer values are truncated, because the key is hashed for every request. */
const MAX_LENGTH = 256

/**
 * The key that keeps a chat where its prompt is cached: `prompt_cache_key`, else the header `x-session-id`, else the end
 * user (`user`, or `metadata.user_id`). Undefined without any of them. Keys are scoped to their account.
 */
export function stickyKey(
  accountId: string,
  body: { readonly model: string },
  header: (name: string) => string | undefined,
): string | undefined {
  const { prompt_cache_key, user, metadata } = body as {
    prompt_cache_key?: unknown
    user?: unknown
    metadata?: { user_id?: unknown } | null
  }
  const name = textOf(prompt_cache_key) ?? textOf(header(SESSION_HEADER)) ?? textOf(user) ?? textOf(metadata?.user_id)
  return name === undefined ? undefined : `${accountId} ${name.slice(0, MAX_LENGTH)}`
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
