import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { extraFeatures } from '../../../src/vendors/anthropic/messages-operation.ts'

const SDK = join(import.meta.dirname, '../../../node_modules/@anthropic-ai/sdk/resources/beta/beta.d.ts')

/** Betas by which another model or account pays, or that belong to other endpoints: none passes without a price of its own. */
const NOT_OF_TOKENS_ONLY = [
  ...['admin-user-sign-out', 'agent-memory', 'analytics-usage-cost', 'ce-claude-code-managed-settings', 'ce-plugins'],
  ...['ce-user-management', 'dreaming', 'efs', 'experimental-claude-tag', 'fallback-credit'],
  ...[
    'google-managed-data-controls',
    'managed-agents',
    'mcp-tunnels',
    'message-batches',
    'server-side-fallback',
    'spend-limit-reads',
    'telemetry-destinations',
  ],
  ...['user-profiles-billing', 'webhooks'],
]

function unpriced(betas: readonly string[]): readonly string[] {
  const request = { model: 'claude-opus-4-8', max_tokens: 1, messages: [] }
  return extraFeatures(request, (name) => (name === 'anthropic-beta' ? betas.join(',') : undefined)).map(
    ({ value }) => value,
  )
}

test("every beta of the vendor's own SDK is either known to cost tokens only, or refused by name", () => {
  const type = /export type AnthropicBeta = ([^;]+);/.exec(readFileSync(SDK, 'utf8'))?.[1] ?? ''
  const betas = [...type.matchAll(/'([^']+)'/g)].map(([, beta]) => beta!)
  const names = unpriced(betas).map((beta) => beta.replace(/[-_]\d{4}-?\d{2}-?\d{2}$/, ''))

  expect(betas.length).toBeGreaterThan(40)
  expect([...new Set(names)].sort()).toEqual(NOT_OF_TOKENS_ONLY)
})

test.each(['messages', 'beta/messages'])(
  "every tool of the vendor's own SDK is known or refused by name (%s)",
  (folder) => {
    const source = readFileSync(join(SDK, '../..', folder, 'messages.d.ts'), 'utf8')
    const union = /export type (?:Beta)?ToolUnion = ([^;]+);/.exec(source)?.[1]?.split(' | ') ?? []
    const types = union.flatMap((name) => {
      const start = source.indexOf(`export interface ${name} {`)
      const type = /\n {4}type\??: ([^;]+);/.exec(source.slice(start, source.indexOf('\n}', start)))?.[1]
      return [...(type ?? '').matchAll(/'([^']+)'/g)].map(([, literal]) => literal!)
    })
    const tools = types.map((type) => ({ type }))
    const request = { model: 'claude-opus-4-8', max_tokens: 1, messages: [], tools }

    expect(types.length).toBeGreaterThan(18)
    expect(extraFeatures(request, () => undefined)).toEqual([])
  },
)

test('what a coding client sends in one of its headers passes', () => {
  const header = [
    'oauth-2025-04-20',
    'claude-code-20250219',
    'interleaved-thinking-2025-05-14',
    'advanced-tool-use-2025-11-20',
    'dangerous-tool-use-2026-09-03',
    'thinking-binding-controls-2026-08-01',
    'thinking-display-updates-2026-08-18',
    'cache-diagnosis-2026-04-07',
    'message-threads-2026-08-12',
  ]

  expect(unpriced([...header, 'fast-lane-2027-01-01'])).toEqual(['fast-lane-2027-01-01'])
})
