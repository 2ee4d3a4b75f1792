import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../src/endpoints/chat/chat-request.ts'
import { createResponsesOperation } from '../../src/endpoints/responses/responses-operation.ts'
import type { ResponsesRequest } from '../../src/endpoints/responses/responses-request.ts'
import { amazonBedrock } from '../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { anthropicVertex } from '../../src/vendors/anthropic/anthropic-vertex.ts'
import { azureOpenai } from '../../src/vendors/azure-openai/azure-openai.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { vertex } from '../../src/vendors/gemini/vertex.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../src/vendors/presets/presets.ts'
import type { Vendor, VendorCall } from '../../src/vendors/vendor.ts'
import { bodyOf, callFromText } from './shared/vendor-call.ts'

const apiKey = 'k-0123456789'
const project = { project: 'my-project-123', location: 'global' }
const compatible = { id: 'own', baseURL: 'https://own.example/v1', apiKey, models: [] }

interface Route {
  readonly name: string
  readonly vendor: Vendor
  readonly upstream: string
  readonly protocol?: string
}

/** All routes of a chat to a vendor other than OpenAI: the vendor, its model id, and its row's protocol. */
const OTHERS: readonly Route[] = [
  { name: 'anthropic', vendor: anthropic({ apiKey }), upstream: 'claude-sonnet-4-6' },
  { name: 'anthropicVertex', vendor: anthropicVertex({ ...project, apiKey }), upstream: 'claude-sonnet-4-6' },
  { name: 'gemini', vendor: gemini({ apiKey }), upstream: 'gemini-2.5-pro' },
  { name: 'vertex', vendor: vertex({ ...project, apiKey }), upstream: 'gemini-2.5-pro' },
  { name: 'vertex, open model', vendor: vertex({ ...project, apiKey }), upstream: 'openai/gpt-oss-120b-maas' },
  { name: 'dashscope', vendor: dashscope({ apiKey }), upstream: 'qwen3-max' },
  {
    name: 'amazonBedrock, Converse',
    vendor: amazonBedrock({ region: 'us-east-1', apiKey }),
    upstream: 'amazon.nova-pro-v1:0',
  },
  {
    name: 'amazonBedrock, OpenAI',
    vendor: amazonBedrock({ region: 'us-east-1', apiKey }),
    upstream: 'openai.gpt-oss-120b-1:0',
  },
  { name: 'azureOpenai', vendor: azureOpenai({ resource: 'my-resource', apiKey }), upstream: 'gpt-5.4' },
  { name: 'openaiCompatible', vendor: openaiCompatible(compatible), upstream: 'm' },
  {
    name: 'openaiCompatible, by Responses',
    vendor: openaiCompatible({ ...compatible, responses: true }),
    upstream: 'm',
    protocol: 'responses',
  },
  ...Object.values<Preset>(presets)
    .filter(({ serves }) => serves.includes('chat'))
    .map((preset) => ({
      name: `preset ${preset.id}`,
      vendor: openaiCompatible(preset, { apiKey, account: 'a' }),
      upstream: 'm',
    })),
]

const policy = (input?: string, output?: string) => ({
  model: 'omni-moderation-latest',
  policy: { ...(input && { input: { mode: input } }), ...(output && { output: { mode: output } }) },
})

function called<Request extends ChatRequest>(
  body: object,
  upstream: string,
  protocol: string | undefined,
): VendorCall<Request> {
  const call = callFromText<Request>(JSON.stringify({ model: 'public', ...body }), { upstream })
  return protocol === undefined ? call : { ...call, model: { ...call.model, protocol } }
}

const chatCall = (moderation: unknown, upstream: string, protocol?: string) =>
  called<ChatRequest>({ messages: [{ role: 'user', content: 'Hi' }], moderation }, upstream, protocol)

const responsesCall = (moderation: unknown, upstream: string) =>
  called({ input: 'Hi', store: false, moderation }, upstream, undefined) as unknown as VendorCall<ResponsesRequest>

describe.each(OTHERS)('a chat at $name', ({ vendor, upstream, protocol }) => {
  it.each([
    ['a model alone', { model: 'omni-moderation-latest' }],
    ['scores', policy('score', 'score')],
  ])('drops %s and reports them', (_title, moderation) => {
    const wire = vendor.chat!.toWire(chatCall(moderation, upstream, protocol))
    expect(bodyOf(wire.body)).not.toHaveProperty('moderation')
    expect(wire.dropped).toContain('moderation')
  })

  it.each([
    ['input', policy('block')],
    ['output', policy('score', 'block')],
    ['output', policy(undefined, 'rewrite')],
  ])('is rejected if its %s must be blocked', (side, moderation) => {
    expect(() => vendor.chat!.toWire(chatCall(moderation, upstream, protocol))).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: `moderation.policy.${side}.mode` }),
    )
  })

  it('accepts null without a report', () => {
    expect(vendor.chat!.toWire(chatCall(null, upstream, protocol)).dropped).not.toContain('moderation')
  })
})

describe.each([
  ['OpenAI', 'gpt-4o', undefined],
  ['OpenAI by Responses', 'gpt-5.4-pro', 'responses'],
])('a chat at %s', (_name, upstream, protocol) => {
  it('keeps the field', () => {
    const moderation = policy('block', 'score')
    const wire = openai({ apiKey }).chat!.toWire(chatCall(moderation, upstream, protocol))
    expect(bodyOf(wire.body)).toMatchObject({ moderation })
    expect(wire.dropped).toEqual([])
  })
})

describe('a response', () => {
  it('keeps the field at OpenAI', () => {
    const call = responsesCall(policy('block'), 'gpt-5.4')
    expect(bodyOf(openai({ apiKey }).responses!.toWire(call).body)).toMatchObject({ moderation: policy('block') })
  })

  it.each([
    ['another server of the dialect', openaiCompatible({ ...compatible, responses: true }), 'm'],
    ['Azure', azureOpenai({ resource: 'my-resource', apiKey }), 'gpt-5.4'],
    ['a vendor that gets a chat', anthropic({ apiKey }), 'claude-sonnet-4-6'],
    ['OpenAI without Responses', openai({ apiKey, responses: false }), 'gpt-5.4'],
  ])('loses scores at %s with a report, and is refused where it is to be blocked', (_name, vendor, upstream) => {
    const [wire] = createResponsesOperation(vendor, responsesCall(policy('score'), upstream))!.requests
    expect(bodyOf(wire!.body)).not.toHaveProperty('moderation')
    expect(wire!.dropped).toContain('moderation')
    expect(() => createResponsesOperation(vendor, responsesCall(policy('block'), upstream))).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'moderation.policy.input.mode' }),
    )
  })
})
