/** Headers that keep the requests of a session together; opencode and OpenRouter's SDK send the last three. */
const SESSION_HEADERS = ['x-session-id', 'x-session-affinity', 'session-id', 'session_id'] as const
/** Longer values are truncated, because the key is hashed for every request. */
const MAX_LENGTH = 256

/**
 * Returns the key that keeps a chat where its prompt is cached: `prompt_cache_key`, otherwise the session (the member
 * `session_id`, or one of {@link SESSION_HEADERS}), otherwise the end user (`user`, or `metadata.user_id`). Undefined without any
 * of them. Keys are scoped to their account.
 */
export function stickyKey(
  accountId: string,
  body: { readonly model: string },
  header: (name: string) => string | undefined,
): string | undefined {
  const { prompt_cache_key, session_id, user, metadata } = body as {
    prompt_cache_key?: unknown
    session_id?: unknown
    user?: unknown
    metadata?: { user_id?: unknown } | null
  }
  const session = textOf(session_id) ?? SESSION_HEADERS.map((name) => textOf(header(name))).find(Boolean)
  const name = textOf(prompt_cache_key) ?? session ?? textOf(user) ?? textOf(metadata?.user_id)
  return name === undefined ? undefined : `${accountId} ${name.slice(0, MAX_LENGTH)}`
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
