import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'

export const CHAT = '/v1/chat/completions'
export const SURE = { temperature: 0 }
export const EMBEDDING = { model: 'vy-4', input: 'hello' }

/** Starts a gateway like `startGateway`, with a model that supports a temperature. */
export function startCached(options: Partial<GatewayOptions> = {}): Promise<StartedGateway> {
  const limits = { maxOutputTokens: 2000 }
  const plain = { id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini', limits } as const
  return startGateway({ ...options, models: [...TEST_MODELS, plain, ...(options.models ?? [])] })
}

/** Caller's view of the cache: the state of the request, and the body. */
export async function askCached(
  started: StartedGateway,
  body: unknown,
  { path = CHAT, ...headers }: Record<string, string> = {},
): Promise<{ response: Response; cache: string | null; text: string }> {
  const response = await started.post(path, body, headers)
  return { response, cache: response.headers.get('x-signalbox-cache'), text: await response.text() }
}
