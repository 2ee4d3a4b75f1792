import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A chat vendor in OpenAI's dialect that keeps every answer back until it is told to answer. */
export interface GatedVendor {
  readonly origin: string
  /** Calls that have arrived. */
  readonly received: number
  /** Called at every arrival. */
  onArrival: () => void
  /** Answers all that wait, and everything that comes later at once. */
  release(): void
  close(): Promise<void>
}

const ANSWER = JSON.stringify({
  id: 'chatcmpl-gated',
  object: 'chat.completion',
  created: 1_767_225_600,
  model: 'gpt-5.4',
  choices: [{ index: 0, message: { role: 'assistant', content: 'one two three' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
})

/** Cost of one of its answers at the prices of `chat-relayed`, in nano-dollars: 9 and 3 tokens. */
export const GATED_ANSWER_COST = 9n * 1000n + 3n * 4000n

export async function gatedVendor(): Promise<GatedVendor> {
  const waiting: ServerResponse[] = []
  let received = 0
  let isReleased = false
  const answer = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
  }
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      received += 1
      if (isReleased) answer(response)
      else waiting.push(response)
      vendor.onArrival()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const vendor: GatedVendor = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get received() {
      return received
    },
    onArrival: () => undefined,
    release() {
      isReleased = true
      for (const response of waiting.splice(0)) answer(response)
    },
    async close() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return vendor
}
