import type { ServerResponse } from 'node:http'
import { afterEach } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnsweringVendor, answeringVendor, eventStream } from '../streams/answering-vendor.ts'

/** The key of the vendors, which no hook may see. */
export const VENDOR_KEY = 'vendor-key-canary-7f3a'

/** A gateway with hooks in front of a vendor that a test scripts, with both dialects. */
export interface HookedGateway extends StartedGateway {
  readonly vendor: AnsweringVendor
  /** Bodies that the vendor got. */
  readonly received: Record<string, unknown>[]
  eventsOf<Type extends GatewayEvent['type']>(type: Type): Extract<GatewayEvent, { type: Type }>[]
}

/** How the vendor answers one call. */
export type Script = (response: ServerResponse, body: Record<string, unknown>) => void

/** Starts one. */
export async function hookedGateway(
  hooks: readonly AnyHook[],
  script: Script = completion('Hello.'),
  options: Partial<GatewayOptions> = {},
): Promise<HookedGateway> {
  const received: Record<string, unknown>[] = []
  const vendor = await answeringVendor((response, body) => {
    received.push(body)
    script(response, body)
  })
  const connection = { apiKey: VENDOR_KEY, baseURL: vendor.origin }
  const started = await startGateway({ vendors: [openai(connection), anthropic(connection)], hooks, ...options })
  return {
    ...started,
    vendor,
    received,
    eventsOf: (type) => started.events.filter((event) => event.type === type) as never,
    async close() {
      await started.close()
      await vendor.close()
    },
  }
}

/** Returns `hookedGateway`, closed after each test. Call it once per file. */
export function closedAfterEach(): typeof hookedGateway {
  let gateway: HookedGateway | undefined
  afterEach(async () => {
    await gateway?.close()
    gateway = undefined
  })
  return async (...parameters) => {
    gateway = await hookedGateway(...parameters)
    return gateway
  }
}

export const USAGE = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }

/** A whole chat answer. */
export function completion(text: string, message: Record<string, unknown> = {}): Script {
  return (response) => {
    const choice = { index: 0, message: { role: 'assistant', content: text, ...message }, finish_reason: 'stop' }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, choices: [choice], usage: USAGE }))
  }
}

/** A chat chunk with one choice. */
export function chunk(
  delta: Record<string, unknown>,
  finish: string | null = null,
  index = 0,
): Record<string, unknown> {
  const choices = [{ index, delta, finish_reason: finish }]
  return { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5.4', choices }
}

/** A streamed answer in one piece. */
export function events(list: readonly Record<string, unknown>[], end = 'data: [DONE]\n\n'): Script {
  return (response) => {
    eventStream(response)
    for (const event of list) {
      const name = typeof event['type'] === 'string' ? `event: ${event['type']}\n` : ''
      response.write(`${name}data: ${JSON.stringify(event)}\n\n`)
    }
    response.end(end)
  }
}

/** A streamed chat that says these pieces. */
export function spoken(pieces: readonly string[]): Script {
  const usage = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5.4', choices: [], usage: USAGE }
  const first = chunk({ role: 'assistant', content: '' })
  return events([first, ...pieces.map((content) => chunk({ content })), chunk({}, 'stop'), usage])
}
