import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { ModelDefinition } from '../../src/catalog/model.ts'
import { listen } from '../support/listen.ts'
import { TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'

/** A call as the vendor has received it. */
export interface ReceivedCall {
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

/** An OpenAI-compatible vendor behind a real socket that checks tokens. */
export interface TokenVendor {
  readonly baseURL: string
  readonly calls: readonly ReceivedCall[]
  close(): Promise<void>
}

/** Returns the rejection of a token, or `undefined` if it is accepted. */
export type TokenRule = (token: string) => { readonly status: number; readonly message: string } | undefined

/** Starts one. */
export async function tokenVendor(rule: TokenRule = () => undefined): Promise<TokenVendor> {
  const calls: ReceivedCall[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      calls.push({ url: request.url ?? '', headers: request.headers })
      const token = (request.headers.authorization ?? '').replace(/^Bearer /, '')
      const refusal = rule(token)
      if (refusal !== undefined) {
        response.writeHead(refusal.status, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ error: { message: refusal.message, type: 'auth', code: 'refused' } }))
        return
      }
      const { stream } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly stream?: boolean }
      const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
      if (stream !== true) {
        response.writeHead(200, { 'content-type': 'application/json' })
        const message = { role: 'assistant', content: 'yes' }
        const choices = [{ index: 0, message, finish_reason: 'stop' }]
        response.end(JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const delta = { role: 'assistant', content: 'yes' }
      const head = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' }
      for (const choices of [
        [{ index: 0, delta, finish_reason: null }],
        [{ index: 0, delta: {}, finish_reason: 'stop' }],
      ])
        response.write(`data: ${JSON.stringify({ ...head, choices })}\n\n`)
      response.end(`data: ${JSON.stringify({ ...head, choices: [], usage })}\n\ndata: [DONE]\n\n`)
    })
  })
  const { origin, close } = await listen(server)
  return {
    baseURL: `${origin}/v1`,
    calls,
    close,
  }
}

/** The model of the vendor `cloud`. */
export const CLOUD_MODEL: ModelDefinition = {
  id: 'cloud-chat',
  kind: 'chat',
  vendor: 'cloud',
  upstream: 'm',
  limits: { maxOutputTokens: 100 },
}

export const CLOUD_PRICES = {
  currency: 'USD',
  prices: (['input_token', 'output_token'] as const).map((meter) => ({
    model: 'cloud-chat',
    meter,
    amount: '1',
    per: 1_000_000,
  })),
} as const

export const CLOUD_KEYS = [{ key: TEST_KEY, account: TEST_ACCOUNT }]

/** A chat call for `gateway.fetch`. */
export function cloudRequest(rest: Record<string, unknown> = {}): Request {
  return new Request('http://gateway.test/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'cloud-chat', messages: [{ role: 'user', content: 'well?' }], ...rest }),
  })
}
