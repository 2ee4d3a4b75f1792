import { ANTHROPIC_COUNT_TOKENS, anthropicMessages } from '../anthropic/anthropic-messages.ts'
import { refuseAnthropic } from '../anthropic/anthropic-request.ts'
import { asList, asObject } from '../request-fields.ts'
import type { SandboxCall, SandboxOperation } from '../sandbox-operation.ts'
import { checkVertexCall, vertexPath } from './vertex-call.ts'

const VERSION = 'vertex-2023-10-16'
const COUNTER = 'count-tokens'
const BETAS =
  /^(?:claude-code|compact|computer-use|context-1m|context-management|dangerous-tool-use|interleaved-thinking|per-turn-control|thinking-binding-controls|thinking-display-updates|tool-search-tool|web-search)-\d{4}-?\d{2}-?\d{2}$/
const COUNT_BETAS = /^(?:claude-code|interleaved-thinking|context-management)-/
/** Fields of Anthropic's own API that the cloud lacks. */
const REFUSED_FIELDS = [
  'service_tier',
  'speed',
  'container',
  'inference_geo',
  'diagnostics',
  'mcp_servers',
  'fallbacks',
]

/** Vertex AI: `rawPredict` and `streamRawPredict` of Claude. Streams have an event of Google's own. */
export function vertexClaude(): SandboxOperation {
  const messages = anthropicMessages()
  return {
    ...messages,
    vendor: 'vertex',
    matches: ({ method, path }) => method === 'POST' && isClaude(path) && vertexPath(path)?.model !== COUNTER,
    answer(call, context) {
      checkVertexCall(call, context.nowMs, { takesKeys: false })
      const { model = '', method } = vertexPath(call.path) ?? {}
      const body = asObject(call.body)
      checkBody(call, BETAS)
      if (body['model'] !== undefined) refuseAnthropic('model: Extra inputs are not permitted')
      if ((method === 'streamRawPredict') !== (body['stream'] === true))
        refuseAnthropic('stream: must agree with the method')
      const reply = messages.answer(ownCall(call, { ...body, model: model.replace('@', '-') }), context)
      if (!reply.streamed) return reply
      const usage = { type: 'vertex_event', usage: { input_tokens: 9, output_tokens: 1 } }
      const [first = '', ...rest] = reply.pieces
      return { ...reply, pieces: [first, `event: vertex_event\ndata: ${JSON.stringify(usage)}\n\n`, ...rest] }
    },
  }
}

/** Vertex AI: the count of Claude's tokens, by a model of that name. */
export const VERTEX_CLAUDE_COUNT: SandboxOperation = {
  ...ANTHROPIC_COUNT_TOKENS,
  vendor: 'vertex',
  matches: ({ method, path }) => method === 'POST' && isClaude(path) && vertexPath(path)?.model === COUNTER,
  answer(call, context) {
    checkVertexCall(call, context.nowMs, { takesKeys: false })
    checkBody(call, COUNT_BETAS)
    return ANTHROPIC_COUNT_TOKENS.answer(ownCall(call, asObject(call.body)), context)
  },
}

function isClaude(path: string): boolean {
  const named = vertexPath(path)
  return named?.publisher === 'anthropic' && /^(?:streamR|r)awPredict$/.test(named.method)
}

function checkBody({ body, headers, bytes }: SandboxCall, betas: RegExp): void {
  const request = asObject(body)
  if (request['anthropic_version'] === undefined) refuseAnthropic('anthropic_version: Field required')
  if (request['anthropic_version'] !== VERSION) refuseAnthropic(`anthropic_version: Input should be '${VERSION}'`)
  for (const name of REFUSED_FIELDS)
    if (request[name] !== undefined) refuseAnthropic(`${name}: Extra inputs are not permitted`)
  for (const beta of (headers['anthropic-beta'] ?? '').split(',').map((part) => part.trim()))
    if (beta !== '' && !betas.test(beta))
      refuseAnthropic(`Unexpected value(s) \`${beta}\` for the \`anthropic-beta\` header.`)
  if (/"cache_control":\{[^}]*"scope"/.test(Buffer.from(bytes).toString('utf8')))
    refuseAnthropic('system.0.cache_control.ephemeral.scope: Extra inputs are not permitted')
  for (const [index, message] of asList(request['messages']).entries())
    for (const block of asList(asObject(message)['content']))
      if (asObject(asObject(block)['source'])['type'] === 'url')
        refuseAnthropic(`messages.${index}.content: URL sources are not supported`)
}

/** The call as Anthropic's own API gets it. */
function ownCall(call: SandboxCall, { anthropic_version: _, ...body }: Record<string, unknown>): SandboxCall {
  return { ...call, body, headers: { ...call.headers, 'anthropic-version': '2023-06-01' } }
}
