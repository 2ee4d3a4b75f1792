import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** Path of a vendor for calls of a model, with the models that it serves. */
export interface ListedPath {
  /** The group `model` is the model's id; without the group the id is read from the body. */
  readonly path: RegExp
  readonly models: ReadonlySet<string>
}

/** A call that a {@link ListedVendor} accepted. */
export interface ListedCall {
  readonly path: string
  readonly model: string
  readonly body: Readonly<Record<string, unknown>>
}

/** A vendor behind a socket that serves only the models of its lists. */
export interface ListedVendor {
  readonly origin: string
  /** Accepted calls, oldest first. */
  readonly calls: readonly ListedCall[]
  close(): Promise<void>
}

/**
 * Starts a vendor that rejects other keys with 401, and other paths and models with 404. The stand-in at `standIn` answers accepted calls
 * and checks their format.
 */
export async function listedVendor(
  standIn: string,
  apiKey: string,
  paths: readonly ListedPath[],
): Promise<ListedVendor> {
  const calls: ListedCall[] = []
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', standIn)
    const bytes = await buffer(request)
    const { authorization, 'x-api-key': ownHeader, 'x-goog-api-key': googleHeader } = request.headers
    const refuse = (status: number, message: string): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message, type: 'not_found_error', code: status } }))
    }
    if (![`Bearer ${apiKey}`, apiKey].includes(String(authorization ?? ownHeader ?? googleHeader)))
      return refuse(401, 'The key belongs to another vendor.')
    const called = paths.find(({ path }) => path.test(url.pathname))
    if (request.method !== 'POST' || called === undefined) return refuse(404, `There is no path ${url.pathname}.`)
    const body = JSON.parse(bytes.toString('utf8')) as Readonly<Record<string, unknown>>
    const model = called.path.exec(url.pathname)?.groups?.['model'] ?? String(body['model'])
    if (!called.models.has(model)) return refuse(404, `There is no model "${model}" at ${url.pathname}.`)
    calls.push({ path: url.pathname, model, body })
    const headers = new Headers()
    for (const [name, value] of Object.entries(request.headers))
      if (typeof value === 'string' && !['host', 'connection', 'content-length'].includes(name))
        headers.set(name, value)
    const answer = await fetch(url, { method: 'POST', headers, body: bytes })
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' })
    if (answer.body !== null) for await (const piece of answer.body) response.write(piece)
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
