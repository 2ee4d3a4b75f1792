import { createServer, type ServerResponse } from 'node:http'
import { listen } from '../../support/listen.ts'

/** Answers one call, whose body is parsed already. */
export type AnswerCall = (response: ServerResponse, body: Record<string, unknown>) => void

/** A vendor behind a real socket that answers each call as the test says. */
export interface AnsweringVendor {
  readonly origin: string
  /** How many calls arrived. */
  readonly calls: number
  /** Calls whose connection was closed before their answer was whole. */
  readonly aborted: number
  close(): Promise<void>
}

/** Starts one. */
export async function answeringVendor(answer: AnswerCall): Promise<AnsweringVendor> {
  let calls = 0
  let aborted = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      calls += 1
      response.on('close', () => {
        if (!response.writableEnded) aborted += 1
      })
      answer(response, JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>)
    })
  })
  const { origin, close } = await listen(server)
  return {
    origin,
    get calls() {
      return calls
    },
    get aborted() {
      return aborted
    },
    close,
  }
}

export function eventStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
