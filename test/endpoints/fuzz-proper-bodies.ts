type Bodies = readonly Readonly<Record<string, unknown>>[]

const PNG_DATA = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PNG_URL = `data:image/png;base64,${PNG_DATA}`
const CDN = 'https://cdn.example.com'

/** Proper bodies of each shape, as full of fields as they go. */
export const multimodalBodies: Bodies = [
  {
    model: 'qw-image-2.0',
    input: { messages: [{ role: 'user', content: [{ text: 'a boat' }] }] },
    parameters: { size: '1024*1024', n: 1, seed: 3, watermark: false, negative_prompt: 'fog', prompt_extend: true },
  },
  {
    model: 'qw-image-edit',
    input: { messages: [{ role: 'user', content: [{ image: `${CDN}/a.png` }, { text: 'more light' }] }] },
  },
]

export const interactionBodies: Bodies = [
  {
    model: 'gmn-3.1-flash-image-preview',
    input: [
      { type: 'text', text: 'a boat' },
      { type: 'image', mime_type: 'image/png', data: 'aGVsbG8=' },
      { type: 'image', mime_type: 'image/png', uri: `${CDN}/a.png` },
    ],
    system_instruction: 'Draw well.',
    response_format: { type: 'image', image_size: '1K', aspect_ratio: '16:9' },
    generation_config: { thinking_level: 'high', temperature: 1 },
    tools: [{ type: 'google_search' }, { type: 'function', name: 'f', parameters: {} }],
    store: true,
    service_tier: 'flex',
  },
  { model: 'gmn-2.5-flash-image', input: 'a boat', stream: true, store: false },
]

export const generationBodies: Bodies = [
  { model: 'gp-image-2', prompt: 'a boat', n: 2, size: '1536x864', quality: 'high', background: 'auto', stream: true },
  {
    model: 'gp-image-2',
    prompt: 'a boat',
    output_format: 'webp',
    output_compression: 50,
    partial_images: 1,
    user: 'u',
  },
]

export const editBodies: Bodies = [
  { model: 'gp-image-2', prompt: 'more light', images: [{ image_url: PNG_URL }], mask: { image_url: PNG_URL }, n: 1 },
  { model: 'gp-image-1', prompt: 'more light', images: [{ image_url: `${CDN}/a.png` }, { image_url: PNG_URL }] },
]

const conversation = [
  { role: 'user', content: 'hello' },
  {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 'signalbox:e30' },
      { type: 'text', text: 'hi' },
      { type: 'tool_use', id: 'call_1', name: 'look', input: { a: 1 } },
    ],
  },
  {
    role: 'user',
    content: [
      {
        type: 'tool_result',
        tool_use_id: 'call_1',
        is_error: true,
        content: [
          { type: 'text', text: 'x' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG_DATA } },
        ],
      },
      { type: 'document', title: 't', source: { type: 'content', content: [{ type: 'text', text: 'b' }] } },
      { type: 'search_result', title: 't', source: 's', content: [{ type: 'text', text: 'c' }] },
    ],
  },
]
const messagesRest = {
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
  messages: conversation,
  tools: [
    {
      name: 'look',
      description: 'looks',
      input_schema: { type: 'object', properties: {}, additionalProperties: false },
      strict: true,
    },
  ],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  output_config: {
    effort: 'high',
    format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
  },
  metadata: { user_id: 'u' },
}

export const countBodies: Bodies = ['cl-sonnet-4-6', 'gmn-2.5-flash'].map((model) => ({ model, ...messagesRest }))
export const messageBodies: Bodies = [
  ...countBodies.map((body) => ({ ...body, max_tokens: 3_000, stop_sequences: ['END'], temperature: 1 })),
  ...countBodies.map(({ model }) => ({
    model,
    max_tokens: 3_000,
    messages: [{ role: 'user', content: 'hi' }],
    thinking: { type: 'enabled', budget_tokens: 2_000 },
    stream: true,
  })),
]

/** For a model that is asked by Responses. */
export const chatBodies: Bodies = [
  {
    model: 'chat-pro',
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: PNG_URL } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_1',
            type: 'function',
            function: { name: 'look', arguments: '{}' },
            extra_content: { responses: { origin: 'x.y', reasoning: [{ id: 'rs_1', encrypted_content: 'z' }] } },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'seen' },
    ],
    max_completion_tokens: 500,
    reasoning_effort: 'medium',
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
    tool_choice: { type: 'function', function: { name: 'look' } },
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object', properties: {} } } },
    logprobs: true,
    top_logprobs: 1,
    metadata: { a: 'b' },
  },
  {
    model: 'chat-pro',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
    stream_options: { include_usage: true },
    tools: [{ type: 'function', function: { name: 'f' } }],
    tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } },
    verbosity: 'low',
    user: 'u',
  },
]

export const speechBodies: Bodies = [
  { model: 'qw3-tts-flash', input: 'Good morning.', voice: 'Cherry', response_format: 'wav', speed: 1 },
  { model: 'qw3-tts-instruct-flash', input: '早上好。', voice: 'alloy', instructions: 'softly', stream_format: 'sse' },
]

export const completionBodies: Bodies = [
  { model: 'cl-sonnet-4-6', prompt: 'a boat', suffix: 'sails', max_tokens: 10, temperature: 0, stop: ['.'] },
  { model: 'cl-sonnet-4-6', prompt: ['a boat', 'a storm'], n: 2, best_of: 3, echo: true, logprobs: 1 },
  { model: 'cl-sonnet-4-6', prompt: [[1, 2], [3]], stream: true, stream_options: { include_usage: true } },
]

export const moderationBodies: Bodies = [
  { model: 'omni-moderation-latest', input: ['a boat', 'a storm'] },
  {
    model: 'omni-moderation-latest',
    input: [
      { type: 'text', text: 'a boat' },
      { type: 'image_url', image_url: { url: PNG_URL } },
      { type: 'image_url', image_url: { url: `${CDN}/a.png` } },
    ],
  },
]

export const rerankBodies: Bodies = [
  { model: 'vy-rerank-2.5', query: 'boats', documents: ['a boat', '早上好。'], top_n: 1, truncation: true },
  {
    model: 'rerank-v3.5',
    query: 'boats',
    documents: [
      { text: 'a boat', id: 7 },
      { title: 'a mug', tags: ['blue', null] },
    ],
    top_k: null,
    return_documents: true,
    max_tokens_per_doc: 512,
  },
]

export const videoBodies: Bodies = [
  {
    model: 'wv2.6-t2v',
    duration: 4,
    resolution: '720p',
    input: { prompt: 'a boat', negative_prompt: 'fog', audio_url: `${CDN}/a.mp3` },
    parameters: { size: '1280*720', duration: 4, shot_type: 'multi', seed: 1, watermark: false },
  },
  { model: 'wv2.6-i2v', input: { prompt: 'x', img_url: `${CDN}/p.png` }, parameters: { resolution: '720P' } },
  { model: 'wv2.6-r2v', input: { prompt: 'character1', reference_urls: [`${CDN}/a.png`, `${CDN}/b.mp4`] } },
  { model: 'wv2.7-t2v', aspect_ratio: '9:16', input: { prompt: 'x' }, parameters: { ratio: '9:16' } },
  { model: 'wv2.7-i2v', input: { media: [{ type: 'first_frame', url: PNG_URL }] }, webhook_url: `${CDN}/hook` },
  { model: 'wv2.7-r2v', input: { prompt: 'Image 1', media: [{ type: 'reference_image', url: `${CDN}/a.png` }] } },
]

const responsesInput = [
  { role: 'developer', content: 'Be brief.' },
  {
    type: 'message',
    role: 'user',
    content: [
      { type: 'input_text', text: 'look' },
      { type: 'input_image', image_url: `data:image/png;base64,${PNG_DATA}`, detail: 'low' },
    ],
  },
  { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: null },
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.', annotations: [] }] },
  { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"a":1}' },
  {
    type: 'function_call_output',
    call_id: 'call_1',
    output: [
      { type: 'input_text', text: 'x' },
      { type: 'input_image', image_url: `data:image/png;base64,${PNG_DATA}` },
    ],
  },
  { type: 'custom_tool_call', call_id: 'call_2', name: 'exec', namespace: 'functions', input: 'ls' },
  { type: 'custom_tool_call_output', call_id: 'call_2', output: 'a.txt' },
  { type: 'additional_tools', tools: [{ type: 'function', name: 'more', parameters: { type: 'object' } }] },
  { role: 'user', content: 'go on' },
]

export const inputTokenBodies: Bodies = ['cl-sonnet-4-6', 'gmn-2.5-flash'].map((model) => ({
  model,
  instructions: 'Be brief.',
  input: responsesInput,
  tools: [
    { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false },
    { type: 'namespace', name: 'functions', tools: [{ type: 'custom', name: 'exec' }] },
    { type: 'web_search' },
  ],
  tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] },
  parallel_tool_calls: true,
  text: { format: { type: 'text' }, verbosity: 'low' },
  reasoning: { effort: 'low', summary: 'auto' },
}))
export const responseBodies: Bodies = [
  ...inputTokenBodies.map((body) => ({
    ...body,
    max_output_tokens: 3_000,
    include: ['reasoning.encrypted_content'],
    metadata: { a: 'b' },
    store: false,
  })),
  ...inputTokenBodies.map(({ model }) => ({ model, input: 'hi', stream: true })),
]

export const embeddingBodies: Bodies = [
  { model: 'text-embedding-v4', input: ['a boat', 'an oar'], encoding_format: 'base64', dimensions: 256, user: 'u' },
  { model: 'text-embedding-v4', input: [[1, 2, 3]] },
]
