import type { ServerResponse } from 'node:http'
import { afterEach, expect } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_MODELS } from '../../support/start-gateway.ts'
import { askGateway } from '../money/two-accounts.ts'
import { type AnswerCall, type AnsweringVendor, answeringVendor, json } from '../streams/answering-vendor.ts'

export const MODEL = 'chat-relayed'
const USAGE = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 }

export interface Bench extends StartedGateway {
  readonly vendor: AnsweringVendor
}

/** Starts gateways and vendors for the tests of a file; they are closed when a test is over. */
export function benches(): {
  vendorOf(answer: AnswerCall): Promise<AnsweringVendor>
  start(answer: AnswerCall, options?: Partial<GatewayOptions>): Promise<Bench>
  startBefore(vendor: AnsweringVendor, options?: Partial<GatewayOptions>): Promise<Bench>
} {
  const open: { close(): Promise<void> }[] = []
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  async function vendorOf(answer: AnswerCall): Promise<AnsweringVendor> {
    const vendor = await answeringVendor(answer)
    open.push(vendor)
    return vendor
  }

  /** A gateway in front of one vendor that a test scripts. */
  async function start(answer: AnswerCall, options: Partial<GatewayOptions> = {}): Promise<Bench> {
    return await startBefore(await vendorOf(answer), options)
  }

  async function startBefore(vendor: AnsweringVendor, options: Partial<GatewayOptions> = {}): Promise<Bench> {
    const started = await startGateway({
      vendors: [openaiCompatible({ id: 'one', baseURL: vendor.origin, apiKey: 'k', models: [] })],
      models: [{ ...TEST_MODELS[0], vendor: 'one', routes: [{ vendor: 'one' }] }],
      ...options,
    })
    open.push(started)
    return { ...started, vendor }
  }

  return { vendorOf, start, startBefore }
}

export function whole(response: ServerResponse, usage: object | null = USAGE): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'hi', refusal: null }, finish_reason: 'stop' }]
  json(response, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage })
}

export const withholding: AnyHook = {
  name: 'guard',
  chargeDenied: false,
  answer: () => ({ deny: { message: 'no', as: 'error' } }),
}

/** Keeps its calls open until it is told to answer them. */
export function waitingVendor(): { readonly answer: AnswerCall; release(): void; readonly asked: Promise<void> } {
  const responses: ServerResponse[] = []
  let onAsked!: () => void
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve
  })
  return {
    asked,
    answer(response) {
      responses.push(response)
      onAsked()
    },
    release() {
      for (const response of responses.splice(0)) whole(response)
    },
  }
}

/** A hook that waits for the test with an answer before it. */
export function heldBack(): { readonly hook: AnyHook; readonly asked: Promise<void>; release(): void } {
  let onAsked!: () => void
  let release!: () => void
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve
  })
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const hook: AnyHook = {
    name: 'slow',
    async answer() {
      onAsked()
      await released
    },
  }
  return { hook, asked, release }
}

export async function accepted(started: StartedGateway, body: object = {}): Promise<string> {
  const request = { model: MODEL, input: 'hello', max_output_tokens: 500, background: true, ...body }
  const [status, answer] = await askGateway(started, 'POST', '/v1/responses', request)
  expect([status, answer['status']]).toEqual([200, 'queued'])
  return String(answer['id'])
}

export function unbilled({ events }: StartedGateway): Extract<GatewayEvent, { type: 'unbilled-usage' }>[] {
  return events.filter((event) => event.type === 'unbilled-usage')
}

export const stateIn = async (store: GatewayStore, id: string): Promise<string | undefined> =>
  (await store.tasks.find(TEST_ACCOUNT, id))?.state

/** Waits until all started work has gone as far as it can without the clock. */
export async function settledTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}
