/** What Node calls connections that never came about, so that nothing can have been sent. Browsers do not tell. */
const UNSENT_CODES: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Is it certain that nothing of the request has left? */
export function isUnsent(error: unknown): boolean {
  return UNSENT_CODES.has(causeOf(error).code)
}

/** Why a connection failed, to be put behind a message; empty where nobody says. Node hides it below a `fetch failed`. */
export function reasonOf(error: unknown): string {
  const { code, message } = causeOf(error)
  const reason = code ?? message
  return typeof reason === 'string' && reason !== '' ? `: ${reason}` : ''
}

function causeOf(error: unknown): { readonly code?: unknown; readonly message?: unknown } {
  const { cause } = (error ?? {}) as { readonly cause?: object | null }
  return cause ?? {}
}
