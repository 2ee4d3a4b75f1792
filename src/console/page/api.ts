/** An error answer of the admin API, or a connection that failed. */
export class ApiError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** In memory only: a reload asks for it again, and no script of another page can read it. */
let operatorKey: string | undefined

export function useOperatorKey(key: string | undefined): void {
  operatorKey = key
}

/** Asks the API beside the page. */
export async function ask<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  return (await (await send('GET', path, { signal })).json()) as Answer
}

/** Changes something, once for each key. */
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

/** @throws ApiError for every answer but a good one. */
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

/** A key that makes a change once, however often its button is pressed. Pages without TLS lack `randomUUID`. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Saves a file that needs the operator's key, which a link could not send. */
export async function download(path: string, fileName: string): Promise<void> {
  const address = URL.createObjectURL(await (await send('GET', path, {})).blob())
  const link = document.createElement('a')
  link.href = address
  link.download = fileName
  link.click()
  URL.revokeObjectURL(address)
}

/** A query string of the values that are given. */
export function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '')
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return query === '' ? '' : `?${query}`
}

/** Members with other values than those that were shown: what another operator has changed meanwhile stays as it is. */
export function changesOf(given: Readonly<Record<string, unknown>>, shown: Readonly<Record<string, unknown>>): object {
  const isChanged = (name: string): boolean => JSON.stringify(given[name]) !== JSON.stringify(shown[name])
  return Object.fromEntries(Object.entries(given).filter(([name]) => isChanged(name)))
}
