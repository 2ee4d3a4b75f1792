/** Error answer of the admin API, or a failed connection. */
export class ApiError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Kept only in memory: it must be entered again after a reload, and no script of another page can read it. */
let operatorKey: string | undefined

export function useOperatorKey(key: string | undefined): void {
  operatorKey = key
}

/** Reads from the API next to the page. */
export async function ask<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  return (await (await send('GET', path, { signal })).json()) as Answer
}

/** Makes a change, once per key. */
export async function change<Answer>(
  method: 'POST' | 'PATCH',
  path: string,
  body: object,
  key: string,
): Promise<Answer> {
  return (await (await send(method, path, { body, headers: { 'idempotency-key': key } })).json()) as Answer
}

interface Sending {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** @throws ApiError for every unsuccessful answer. */
export async function send(method: string, path: string, { body, headers = {}, signal }: Sending): Promise<Response> {
  const response = await fetch(new URL(`v1/${path}`, document.baseURI), {
    method,
    headers: {
      'x-signalbox-console': '1',
      ...(operatorKey === undefined ? {} : { authorization: `Bearer ${operatorKey}` }),
      ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error
    throw new ApiError(0, 'The gateway cannot be reached.')
  })
  if (response.ok) return response
  throw new ApiError(response.status, await messageOf(response))
}

async function messageOf(response: Response): Promise<string> {
  const answer: unknown = await response.json().catch(() => undefined)
  const { error } = (answer ?? {}) as { error?: { message?: unknown } }
  return typeof error?.message === 'string' ? error.message : `The gateway answered ${response.status}.`
}

/** Creates a key that makes a change once, however often its button is clicked. Pages without TLS do not have `randomUUID`. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Downloads a file with the operator's key, which a link could not send. */
export async function download(path: string, fileName: string): Promise<void> {
  const address = URL.createObjectURL(await (await send('GET', path, {})).blob())
  const link = document.createElement('a')
  link.href = address
  link.download = fileName
  link.click()
  URL.revokeObjectURL(address)
}

/** Returns a query string of the values that are set. */
export function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '')
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return query === '' ? '' : `?${query}`
}

/** Returns members whose values differ from the displayed ones: concurrent changes by other operators are kept. */
export function changesOf(given: Readonly<Record<string, unknown>>, shown: Readonly<Record<string, unknown>>): object {
  const isChanged = (name: string): boolean => JSON.stringify(given[name]) !== JSON.stringify(shown[name])
  return Object.fromEntries(Object.entries(given).filter(([name]) => isChanged(name)))
}
