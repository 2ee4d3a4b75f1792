import { createServer, type ServerResponse } from 'node:http'
import { listen } from '../../support/listen.ts'

/** Answers one call; `text` is what shall be spoken. */
export type SpeakAnswer = (response: ServerResponse, text: string) => void

/** A vendor behind a real socket that answers each call as the test says. */
export interface SpeechVendor {
  readonly origin: string
  /** The texts that arrived, in their order. */
  readonly texts: readonly string[]
  close(): Promise<void>
}

/** Starts one. The answers are used in the order of the calls, the last of them for all further calls. */
export async function speechVendor(answers: readonly SpeakAnswer[]): Promise<SpeechVendor> {
  const texts: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { input: { text: string } }
      texts.push(body.input.text)
      const answer = answers[Math.min(texts.length, answers.length) - 1]
      answer?.(response, body.input.text)
    })
  })
  const { origin, close } = await listen(server)
  return {
    origin,
    texts,
    close,
  }
}

/** An event with so much sound in it. */
export function soundEvent(samples: Uint8Array, finishReason: string | null = null): string {
  const audio = { data: Buffer.from(samples).toString('base64'), url: '', id: 'audio_1' }
  return `event:result\ndata:${JSON.stringify({ output: { finish_reason: finishReason, audio } })}\n\n`
}

/** Answers with these events, and ends. */
export function speaks(...events: readonly string[]): SpeakAnswer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events) response.write(event)
    response.end()
  }
}

/** Answers with JSON. */
export function answersJson(status: number, body: unknown): SpeakAnswer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }
}

/** Sends an event, waits until it has left, and breaks the connection. */
export function breaksAfter(event: string): SpeakAnswer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event, () => response.socket?.resetAndDestroy())
  }
}
