import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import type { ChatMessage, ChatRequest } from '../../src/endpoints/chat/chat-request.ts'
import { interactionSchema } from '../../src/endpoints/images/interactions/interaction-schema.ts'
import { parseVideoRequest } from '../../src/endpoints/videos/video-endpoint.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import type { WireRequest } from '../../src/vendors/vendor.ts'
import { interactionCall, interactionsOf } from '../vendors/gemini/interaction-call.ts'
import { callFromRequest, NOW_MS } from '../vendors/shared/vendor-call.ts'
import { fieldTable, verdictOf } from './support/field-table.ts'

const KEY = { apiKey: 'vendor-key-0123456789' }

/** The fields of a column that have a verdict. */
function fieldsThatAre(verdict: string, cells: ReadonlyMap<string, string>): string[] {
  return [...cells].filter(([, cell]) => verdictOf(cell) === verdict).map(([field]) => field)
}

function sentJson({ body }: WireRequest): Record<string, unknown> {
  const bytes = typeof body === 'string' ? [Buffer.from(body)] : body instanceof Uint8Array ? [body] : body
  return JSON.parse(Buffer.concat(bytes).toString('utf8')) as Record<string, unknown>
}

test('the table of chat messages is what reaches each vendor', () => {
  const messages: ChatMessage[] = [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      name: 'anna',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      ],
    },
    {
      role: 'assistant',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'a boat' },
  ]
  const table = fieldTable('Chat message')
  const call = callFromRequest<ChatRequest>({ model: 'any-model', messages })
  const vendors = { OpenAI: openai(KEY), Anthropic: anthropic(KEY), Gemini: gemini(KEY), DashScope: dashscope(KEY) }

  for (const [name, vendor] of Object.entries(vendors)) {
    const wire = vendor.chat!.toWire(call)
    const isSame = JSON.stringify(sentJson(wire)['messages']) === JSON.stringify(messages)
    const dropped = (wire.dropped ?? []).map((field) => field.replace('messages.', ''))

    expect(fieldsThatAre('dropped', table.column(name)), name).toEqual(dropped)
    const others = table.fields.filter((field) => !dropped.includes(field))
    expect(fieldsThatAre(isSame ? 'passed' : 'mapped', table.column(name)), name).toEqual(others)
  }
})

test('the table of interactions is what passes, and what is refused', () => {
  const table = fieldTable('Interactions-style image request')
  const request: Record<string, unknown> = {
    ...{ model: 'gmn-3.1-flash-image-preview', input: [{ type: 'image', mime_type: 'image/png', data: 'AA==' }] },
    ...{ system_instruction: 's', tools: [{ type: 'function', name: 'f' }], store: true, stream: true },
    response_format: { type: 'image', mime_type: 'image/png', image_size: '1K', aspect_ratio: '1:1' },
    ...{ generation_config: { thinking_level: 'high', temperature: 1 }, previous_interaction_id: 'v1_ours' },
  }

  const sent = sentJson(interactionsOf().toWire(interactionCall(request, { previousUpstreamId: 'v1_theirs' })))

  const top = (fields: readonly string[]) => [...new Set(fields.map((field) => field.split(/[.[]/)[0] ?? ''))].sort()
  const isSame = (name: string) => JSON.stringify(sent[name]) === JSON.stringify(request[name])
  const column = table.column('Interactions API')
  expect(top(fieldsThatAre('passed', column))).toEqual(Object.keys(request).filter(isSame).sort())
  expect(fieldsThatAre('mapped', column)).toEqual(['model', 'previous_interaction_id'])
  expect(fieldsThatAre('refused', column)).toEqual(['background'])
  expect(fieldsThatAre('refused', table.column('older API'))).toEqual(['previous_interaction_id', 'background'])
  const { previous_interaction_id: _previous, ...fresh } = request
  expect(interactionSchema().safeParse({ ...fresh, background: false }).success).toBe(true)
  expect(interactionSchema().safeParse({ ...fresh, background: true }).success).toBe(false)
})

test('the table of videos is what the vendor gets as it was sent', () => {
  const body = {
    ...{ model: 'wv2.7-t2v', duration: 6, resolution: '1080p', aspect_ratio: '9:16' },
    ...{ input: { prompt: 'a boat' }, parameters: { watermark: false } },
    webhook_url: 'https://app.example.com/hook',
  }
  const column = fieldTable('Video generation request').column('DashScope')
  const model = createCatalog(BUILT_IN_MODELS).find(body.model)!
  const call = { bytes: undefined, model, publicModel: body.model, ...KEY, stream: false, nowMs: NOW_MS }

  const sent = sentJson(dashscope(KEY).videos!.toWire({ ...call, request: parseVideoRequest(body, model) }))

  expect(sent).toEqual({
    model: model.upstream,
    input: body.input,
    parameters: { watermark: false, resolution: '1080P', ratio: '9:16', duration: 6 },
  })
  expect(fieldsThatAre('passed', column)).toEqual(['input', 'parameters'])
  expect(fieldsThatAre('mapped', column)).toEqual(
    Object.keys(body).filter((field) => !['input', 'parameters'].includes(field)),
  )
})
