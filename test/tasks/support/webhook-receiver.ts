import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { listen } from '../../support/listen.ts'

/** A message as it arrived. */
export interface ReceivedMessage {
  readonly id: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The receiver's clock when it arrived, Unix milliseconds. */
  readonly atMs: number
}

/** How a receiver answers; the default is 204. */
export type Answer = (response: ServerResponse, message: ReceivedMessage) => void

/** A receiver of webhooks behind a real socket. */
export interface WebhookReceiver {
  /** `http://127.0.0.1:…` */
  readonly origin: string
  readonly messages: readonly ReceivedMessage[]
  /** Connections that were made, whether or not a request came. */
  readonly connections: number
  /** Replaces the answer from now on. */
  answerBy(answer: Answer): void
  /** Resolves once so many messages have arrived in all. */
  received(count: number): Promise<readonly ReceivedMessage[]>
  close(): Promise<void>
}

/** Starts a receiver. */
export async function startReceiver(nowMs: () => number = Date.now): Promise<WebhookReceiver> {
  const messages: ReceivedMessage[] = []
  const waiting = new Set<() => void>()
  let connections = 0
  let answer: Answer = (response) => void response.writeHead(204).end()
  const server = createServer((request, response) => {
    void readMessage(request, nowMs()).then((message) => {
      messages.push(message)
      for (const look of [...waiting]) look()
      answer(response, message)
    })
  })
  server.on('connection', () => connections++)
  const { origin, close } = await listen(server)
  return {
    origin,
    messages,
    get connections() {
      return connections
    },
    answerBy(next) {
      answer = next
    },
    received: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (messages.length < count) return
          waiting.delete(look)
          resolve(messages)
        }
        waiting.add(look)
        look()
      }),
    close,
  }
}

/** Reads a message as a receiver of the public package would; throws when its signature or time is wrong. */
export function verify(secret: string, { body, headers }: ReceivedMessage): unknown {
  return new Webhook(secret).verify(body, { ...headers })
}

async function readMessage(request: IncomingMessage, atMs: number): Promise<ReceivedMessage> {
  const headers = request.headers as Record<string, string>
  return { id: headers['webhook-id'] ?? '', path: request.url ?? '', headers, body: await text(request), atMs }
}
