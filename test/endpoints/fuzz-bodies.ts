import fc from 'fast-check'

/** Stands for text that `JSON.stringify` would never write; {@link rawJson} puts it in. */
const RAW = '@raw:'

/** Names that checks, vendors or engines could take for something else. */
const NAMES = [
  ...['constructor', 'toString', 'hasOwnProperty', 'valueOf', '', '0', 'toJSON', 'then', '\u0000', 'ｎ'],
  ...['n', 'N', 'size', 'Size', 'quality', 'imageSize', 'image_size', 'responseFormat', 'response_format', 'stream'],
  ...['model', 'type', 'text', 'image', 'url', 'uri', 'data', 'content', 'role', 'form', 'images', 'mask', 'source'],
  ...['duration', 'resolution', 'parameters', 'input', 'media', 'tools', 'system', 'thinking', 'max_tokens', 'voice'],
  ...['previous_interaction_id', 'generation_config', 'candidate_count', 'webhook_url', 'img_url', 'reference_urls'],
  ...[
    'id',
    'call_id',
    'name',
    'namespace',
    'arguments',
    'output',
    'summary',
    'encrypted_content',
    'reasoning',
    'store',
  ],
  ...[
    'tool_choice',
    'format',
    'execution',
    'previous_response_id',
    'conversation',
    'background',
    'include',
    'instructions',
  ],
] as const

const TEXTS = [
  ...[
    '',
    ' ',
    '\u0000',
    '\uFEFF',
    '\ud800',
    'a\udc00b',
    '\r\nx-evil: 1',
    'data: [DONE]\n\n',
    '\u2028',
    '../../etc/passwd',
  ],
  ...[
    'http://169.254.169.254/',
    'https://[::1]/',
    'https://user:secret@example.com/',
    'HTTPS://EXAMPLE.COM',
    'https://',
  ],
  ...[
    'file:///etc/passwd',
    'gs://bucket/a',
    'oss://a',
    'data:image/png;base64,AAAA',
    'data:,',
    'javascript:1',
    'AAAA',
    '====',
  ],
  ...[
    'text',
    'image',
    'user',
    'assistant',
    'system',
    'tool_use',
    'tool_result',
    'document',
    'search_result',
    'enabled',
  ],
  ...[
    'base64',
    'url',
    'content',
    'auto',
    'any',
    'tool',
    'high',
    '4K',
    '512px',
    '1024*1024',
    '1024x1024',
    '99999x99999',
    'hd',
  ],
  ...[
    '720p',
    '1080P',
    '16:9',
    'first_frame',
    'reference_video',
    'mp3',
    'wav',
    'sse',
    'Cherry',
    'json_schema',
    'signalbox:e30',
  ],
  ...[
    'function',
    'custom',
    'namespace',
    'tool_search',
    'web_search',
    'image_generation',
    'mcp',
    'allowed_tools',
    'required',
  ],
  ...['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output', 'reasoning'],
  ...[
    'item_reference',
    'additional_tools',
    'configuration_update',
    'compaction',
    'compaction_trigger',
    'resp_1',
    'msg_1',
  ],
  ...[
    'input_text',
    'input_image',
    'input_file',
    'output_text',
    'refusal',
    'call_1',
    'call_2',
    '{"a":1}',
    'none',
    'client',
  ],
  ...['signalbox:eyJfX3Byb3RvX18iOnt9fQ', 'x'.repeat(3_000), '\u{1F469}\u200D'.repeat(50)],
] as const

const NUMBERS = [0, -0, 1, -1, 0.5, 2, 11, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 5e-324] as const

const garbage: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<unknown>(null, true, false, ...NUMBERS, ...TEXTS, `${RAW}1e400`, `${RAW}-0.0`, `${RAW}1E2`),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 4 }),
  ),
})).value

/** One change somewhere in a body; `at` chooses the way down. */
interface Change {
  readonly at: readonly number[]
  readonly kind: 'replace' | 'remove' | 'add' | 'double' | 'wrap'
  readonly name: string
  readonly value: unknown
}

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.array(fc.nat(20), { maxLength: 6 }),
  kind: fc.constantFrom('replace', 'replace', 'add', 'add', 'remove', 'double', 'wrap'),
  name: fc.constantFrom(...NAMES),
  value: garbage,
})

type Bodies = readonly Readonly<Record<string, unknown>>[]

/** Bodies like these, each with one to four changes. The model stays, because another one would only be refused. */
export function oddBodies(bodies: Bodies): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .tuple(fc.constantFrom(...bodies), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([body, changes]) => {
      const changed = changes.reduce<unknown>((value, one) => changedAt(value, one, 0), structuredClone(body))
      return { ...(changed as Record<string, unknown>), model: body['model'] }
    })
}

/** JSON text of a body, in which markers of {@link oddBodies} become numbers that no value of JavaScript has. */
export function rawJson(body: unknown): string {
  return JSON.stringify(body).replace(/"@raw:([^"]+)"/g, '$1')
}

function changedAt(value: unknown, one: Change, depth: number): unknown {
  const step = one.at[depth]
  if (typeof value !== 'object' || value === null || (step === undefined && depth > 0)) return changedHere(value, one)
  const names = Object.keys(value)
  const name = names[(step ?? 0) % Math.max(1, names.length)]
  if (one.kind === 'add' && (step === undefined || depth + 1 === one.at.length || name === undefined)) {
    if (Array.isArray(value)) return [...value, one.value]
    return { ...value, [one.name]: one.value }
  }
  if (name === undefined) return changedHere(value, one)
  const isLast = step === undefined || depth + 1 === one.at.length
  if (one.kind === 'remove' && isLast) {
    if (Array.isArray(value)) return value.filter((_item, index) => String(index) !== name)
    return Object.fromEntries(Object.entries(value).filter(([given]) => given !== name))
  }
  const members = value as Record<string, unknown>
  const inner = isLast ? changedHere(members[name], one) : changedAt(members[name], one, depth + 1)
  if (Array.isArray(value)) return value.map((item, index) => (String(index) === name ? inner : item))
  return { ...members, [name]: inner }
}

function changedHere(value: unknown, { kind, value: added }: Change): unknown {
  if (kind === 'double') return Array.isArray(value) ? [...value, ...value] : [value, value]
  return kind === 'wrap' ? { value } : added
}
