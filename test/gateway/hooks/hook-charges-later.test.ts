import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AnyHook, HookCall } from '../../../src/hooks/hook.ts'
import { videoBody } from '../../drills/support/video-bodies.ts'
import { type StartedMcp, startMcp } from '../../mcp/support/start-mcp.ts'
import { testPrices } from '../../support/test-prices.ts'

/** A tenth of a dollar, so that it is visible next to the price of a video. */
const UNIT = { meter: 'hook_unit', amount: '0.1' } as const
const guard: AnyHook = { name: 'guard', request: (call: HookCall) => void call.charge('hook_unit', 2) }

let plain: StartedMcp
let guarded: StartedMcp

beforeAll(async () => {
  const units = ['wv2.7-t2v', 'chat-qwen'].map((model) => ({ model, ...UNIT }))
  const prices = { currency: 'USD' as const, prices: [...testPrices.prices, ...units] }
  plain = await startMcp({ gateway: { prices, taskPollIntervalMs: 5 } })
  guarded = await startMcp({ gateway: { prices, hooks: [guard], taskPollIntervalMs: 5 } })
})
afterAll(async () => {
  await plain.close()
  await guarded.close()
})

test.each<[string, string, Record<string, unknown>]>([
  ['a video', '/v1/videos/generations', videoBody('wv2.7-t2v')],
  ['a response in the background', '/v1/responses', { model: 'chat-qwen', input: 'hi', background: true }],
])('units of %s are held with it and charged at its end', async (_name, path, body) => {
  const costs: bigint[] = []
  for (const started of [plain, guarded]) {
    const before = await started.account()
    const reply = await started.post(path, body)
    const { id } = (await reply.json()) as { id: string }
    const ended = await started.taskEnded(id)
    const after = await started.account()
    expect(ended.state).toBe('completed')
    expect(after.held).toBe(0n)
    expect(before.balance - after.balance).toBe(ended.costNanoDollars)
    expect(ended.usage?.hookUnits).toBe(started === guarded ? 2 : undefined)
    costs.push(ended.costNanoDollars)
  }
  expect(costs[1]! - costs[0]!).toBe(200_000_000n)
})
