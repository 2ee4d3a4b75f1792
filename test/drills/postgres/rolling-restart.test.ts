import { randomBytes } from 'node:crypto'
import { Agent, createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BuiltCommand, builtCommand, type ServerProcess } from '../../cli/support/built-command.ts'
import { realServer } from '../../support/real-servers.ts'
import { chatBody } from '../../support/start-gateway.ts'

const postgres = await realServer('postgres')
const PROBE_INTERVAL_MS = 100
const CALLERS = 6

/** Sends each request to the next server whose last probe was ready, over connections that it keeps. Never tries twice. */
class Balancer {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #known = new Map<string, { isReady: boolean }>()
  readonly #server: Server
  readonly #prober = setInterval(() => void this.#probeAll(), PROBE_INTERVAL_MS)
  #turn = 0

  constructor() {
    this.#server = createServer((incoming, outgoing) => {
      const ready = [...this.#known].filter(([, { isReady }]) => isReady)
      const [url] = ready[this.#turn++ % ready.length] ?? []
      if (url === undefined) return outgoing.writeHead(502).end('no server is ready')
      const { method, url: path, headers } = incoming
      const upstream = request(`${url}${path}`, { method, headers, agent: this.#agent }, (answer) => {
        // Which connections stay open is between two neighbours.
        const { connection: _connection, 'keep-alive': _keepAlive, ...passed } = answer.headers
        outgoing.writeHead(answer.statusCode ?? 502, passed)
        answer.pipe(outgoing)
      })
      upstream.on('error', (error) => {
        if (outgoing.headersSent) outgoing.destroy()
        else outgoing.writeHead(502).end(`balancer: ${error.message}`)
      })
      incoming.pipe(upstream)
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Adds a server, and waits until it is ready. */
  async add(url: string): Promise<void> {
    this.#known.set(url, { isReady: false })
    while (this.#known.get(url)?.isReady !== true) await this.#probe(url)
  }

  remove(url: string): void {
    this.#known.delete(url)
  }

  close(): void {
    clearInterval(this.#prober)
    this.#agent.destroy()
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #probeAll(): Promise<void> {
    await Promise.all([...this.#known.keys()].map((url) => this.#probe(url)))
  }

  async #probe(url: string): Promise<void> {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined)
    await answer?.text()
    const known = this.#known.get(url)
    if (known !== undefined) known.isReady = answer?.status === 200
  }
}

let command: BuiltCommand
beforeAll(async () => {
  command = await builtCommand()
}, 60_000)
afterAll(() => command.remove())

describe.skipIf(postgres.missing !== undefined)('a rolling restart under load', () => {
  test('fails no request, whole or streamed', { timeout: 120_000 }, async () => {
    const key = `sk-rolling-${randomBytes(6).toString('hex')}`
    const environment = {
      SIGNALBOX_STORE: postgres.url,
      SIGNALBOX_API_KEYS: key,
      SIGNALBOX_LIST_PRICES: '1',
      SIGNALBOX_CREDIT: '100',
      SIGNALBOX_SHUTDOWN_DELAY: '1s',
    }
    const balancer = new Balancer()
    const start = async (): Promise<ServerProcess> => {
      const server = await command.serve(['--sandbox'], environment)
      await balancer.add(server.url)
      return server
    }
    const url = await balancer.listen()
    const old = [await start(), await start()]
    const answers = new Map<string, number>()
    let isOver = false
    const call = async (isStream: boolean): Promise<void> => {
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...chatBody('cl-sonnet-4-6', 'Say hello'), stream: isStream }),
      })
      const text = await answer.text()
      const isWhole = !isStream || text.trimEnd().endsWith('data: [DONE]')
      const kind = answer.status === 200 && isWhole ? 'answered' : `${answer.status} ${text.slice(-300)}`
      answers.set(kind, (answers.get(kind) ?? 0) + 1)
    }
    const callers = Array.from({ length: CALLERS }, async (_, index) => {
      while (!isOver) await call(index % 2 === 0)
    })

    const exits: (number | null)[] = []
    const fresh: ServerProcess[] = []
    for (const server of old) {
      fresh.push(await start())
      exits.push(await server.end('SIGTERM'))
      balancer.remove(server.url)
    }
    isOver = true
    await Promise.all(callers)
    balancer.close()
    await Promise.all(fresh.map((server) => server.end('SIGTERM')))

    expect(Object.fromEntries(answers)).toEqual({ answered: expect.any(Number) })
    expect(answers.get('answered')).toBeGreaterThan(50)
    expect(exits).toEqual([0, 0])
  })
})
