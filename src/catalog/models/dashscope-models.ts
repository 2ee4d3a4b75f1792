import type { ImageAbilities, ModelDefinition, VideoAbilities } from '../model.ts'

// Each list is created by a call that is marked as pure, so that a bundle with one builder contains only the rows of its kind.

/** Image sizes in pixels, width by height: the eight of the API specification, and two that the vendor writes differently. */
export const MULTIMODAL_SIZES = [
  ...['1024*1024', '1664*928', '1472*1140', '1472*1104', '1328*1328', '1140*1472', '1104*1472', '928*1664'],
  ...['1280*720', '720*1280'],
] as const

/** Voices of every speech model (Model Studio, speech synthesis). The first is the specification's default. */
export const SHARED_VOICES = [
  ...['Cherry', 'Ethan', 'Serena', 'Chelsie', 'Momo', 'Vivian', 'Moon', 'Maia', 'Kai', 'Nofish', 'Bella'],
  ...['Eldric Sage', 'Mia', 'Mochi', 'Bellona', 'Vincent', 'Bunny', 'Neil', 'Elias', 'Arthur', 'Nini', 'Seren', 'Pip'],
  'Stella',
] as const

/** Voices of dialects, languages and others that only the basic speech model has. */
export const BASIC_VOICES = [
  ...['Jennifer', 'Ryan', 'Katerina', 'Aiden', 'Dylan', 'Jada', 'Sunny', 'Li', 'Marcus', 'Roy', 'Peter', 'Eric'],
  ...['Rocky', 'Kiki', 'Ebona', 'Bodega', 'Sonrisa', 'Alek', 'Dolce', 'Sohee', 'Ono Anna', 'Lenn', 'Emilien', 'Andre'],
  'Radio Gol',
] as const

/** Embedding models of DashScope (API specification, "Embedding request and response"). `contextTokens` applies to one text. */
export const DASHSCOPE_EMBEDDING_MODELS: readonly ModelDefinition[] = [
  {
    id: 'text-embedding-v4',
    kind: 'embedding',
    vendor: 'dashscope',
    limits: { contextTokens: 8192, dimensions: 1024, nativeDimensions: [2048, 1536, 1024, 768, 512, 256, 128, 64] },
    displayName: 'Text Embedding v4',
  },
]

/** Rerank models of DashScope (Model Studio, text rerank). */
export const DASHSCOPE_RERANK_MODELS: readonly ModelDefinition[] = [
  {
    id: 'qw3-rerank',
    kind: 'rerank',
    vendor: 'dashscope',
    upstream: 'qwen3-rerank',
    aliases: ['qwen3-rerank'],
    displayName: 'Qwen3 Rerank',
  },
  { id: 'gte-rerank-v2', kind: 'rerank', vendor: 'dashscope', displayName: 'GTE Rerank v2' },
  {
    id: 'qw3-vl-rerank',
    kind: 'rerank',
    vendor: 'dashscope',
    upstream: 'qwen3-vl-rerank',
    aliases: ['qwen3-vl-rerank'],
    displayName: 'Qwen3 VL Rerank',
  },
]

/**
 * Image models of the multimodal shape (API specification, "Multimodal image request"). The `qw-image-edit*` models edit images
 * but are called on the generations route, so their kind is `image`. The vendor's `2.0` models edit too. Some could generate up
 * to six images per request; the specification allows one.
 */
export const DASHSCOPE_IMAGE_MODELS: readonly ModelDefinition[] = /* @__PURE__ */ imageModels()

/**
 * Video models (API specification, "Video generation request"). The protocol is the vendor's body layout of a model; 2.5 uses the
 * layout of 2.6.
 */
export const DASHSCOPE_VIDEO_MODELS: readonly ModelDefinition[] = /* @__PURE__ */ videoModels()

/**
 * Speech models (API specification, "Speech request"). A voice about which sources disagree is listed: the vendor rejects
 * unsupported voices, and its message reaches the caller.
 */
export const DASHSCOPE_SPEECH_MODELS: readonly ModelDefinition[] = /* @__PURE__ */ speechModels()

function imageModels(): ModelDefinition[] {
  const common = { maxImages: 1, answersWithUrls: true }
  const fromText: ImageAbilities = {
    ...common,
    sizes: MULTIMODAL_SIZES,
    defaultSize: '1024*1024',
    referenceImages: { min: 0, max: 0 },
  }
  const fromTextOrImages: ImageAbilities = { ...fromText, referenceImages: { min: 0, max: 3 } }
  const fromImages: ImageAbilities = { ...common, sizes: MULTIMODAL_SIZES, referenceImages: { min: 1, max: 3 } }
  // DashScope, Qwen-Image editing: the first editing model does not support the two fields.
  const keepingSize: ImageAbilities = {
    ...common,
    referenceImages: { min: 1, max: 3 },
    refusedFields: ['size', 'prompt_extend'],
  }
  return [
    qwenImage('2.0', 'Qwen Image 2.0', fromTextOrImages),
    qwenImage('2.0-pro', 'Qwen Image 2.0 Pro', fromTextOrImages),
    qwenImage('max', 'Qwen Image Max', fromText),
    qwenImage('edit', 'Qwen Image Edit', keepingSize),
    qwenImage('edit-plus', 'Qwen Image Edit Plus', fromImages),
    qwenImage('edit-max', 'Qwen Image Edit Max', fromImages),
  ]
}

function qwenImage(variant: string, displayName: string, image: ImageAbilities): ModelDefinition {
  const upstream = `qwen-image-${variant}`
  return {
    id: `qw-image-${variant}`,
    kind: 'image',
    vendor: 'dashscope',
    upstream,
    protocol: 'multimodal',
    image,
    aliases: [upstream],
    displayName,
  }
}

function videoModels(): ModelDefinition[] {
  // DashScope, text-to-video of Wan 2.5.
  const text25: VideoAbilities = {
    task: 't2v',
    resolutions: ['480p', '720p', '1080p'],
    durations: [5, 10],
    maxBilledSeconds: 10,
    geometry: 'size',
  }
  const picture25: VideoAbilities = { ...text25, task: 'i2v', geometry: 'resolution' }

  // DashScope, text-to-video of Wan 2.6.
  const text26: VideoAbilities = {
    task: 't2v',
    resolutions: ['720p', '1080p'],
    durations: { min: 2, max: 15 },
    maxBilledSeconds: 15,
    geometry: 'size',
    takesShotType: true,
  }
  const picture26: VideoAbilities = { ...text26, task: 'i2v', geometry: 'resolution' }
  const references26: VideoAbilities = {
    ...text26,
    task: 'r2v',
    durations: { min: 2, max: 10 },
    // Reference videos are billed too: three of 30 seconds at most.
    maxBilledSeconds: 100,
  }

  // DashScope, text-to-video of Wan 2.7.
  const text27: VideoAbilities = {
    task: 't2v',
    resolutions: ['720p', '1080p'],
    durations: { min: 2, max: 15 },
    maxBilledSeconds: 15,
    geometry: 'resolution-ratio',
  }
  const picture27: VideoAbilities = {
    ...text27,
    task: 'i2v',
    geometry: 'resolution',
    // A first clip of 10 seconds at most is billed too.
    maxBilledSeconds: 25,
  }
  const references27: VideoAbilities = {
    ...text27,
    task: 'r2v',
    durationsWithReferenceVideo: { min: 2, max: 10 },
    // Reference videos are billed too: five of 30 seconds at most.
    maxBilledSeconds: 160,
  }
  return [
    wan('2.5-t2v-preview', 'wan-2-6', 'Wan 2.5 Text to Video Preview', text25),
    wan('2.5-i2v-preview', 'wan-2-6', 'Wan 2.5 Image to Video Preview', picture25),
    wan('2.6-t2v', 'wan-2-6', 'Wan 2.6 Text to Video', text26),
    wan('2.6-i2v', 'wan-2-6', 'Wan 2.6 Image to Video', picture26),
    wan('2.6-i2v-flash', 'wan-2-6', 'Wan 2.6 Image to Video Flash', { ...picture26, canMute: true }),
    wan('2.6-r2v', 'wan-2-6', 'Wan 2.6 Reference to Video', references26),
    wan('2.6-r2v-flash', 'wan-2-6', 'Wan 2.6 Reference to Video Flash', { ...references26, canMute: true }),
    wan('2.7-t2v', 'wan-2-7', 'Wan 2.7 Text to Video', text27),
    wan('2.7-t2v-2026-04-25', 'wan-2-7', 'Wan 2.7 Text to Video 2026-04-25', text27, Date.UTC(2026, 3, 25) / 1000),
    wan('2.7-i2v', 'wan-2-7', 'Wan 2.7 Image to Video', picture27),
    wan('2.7-i2v-2026-04-25', 'wan-2-7', 'Wan 2.7 Image to Video 2026-04-25', picture27, Date.UTC(2026, 3, 25) / 1000),
    wan('2.7-r2v', 'wan-2-7', 'Wan 2.7 Reference to Video', references27),
  ]
}

function wan(
  variant: string,
  protocol: string,
  displayName: string,
  video: VideoAbilities,
  created?: number,
): ModelDefinition {
  const upstream = `wan${variant}`
  return {
    id: `wv${variant}`,
    kind: 'video',
    vendor: 'dashscope',
    upstream,
    protocol,
    video,
    aliases: [upstream],
    created,
    displayName,
  }
}

function speechModels(): ModelDefinition[] {
  // Model Studio, speech synthesis: maximum number of characters per call.
  const maxCharacters = 600
  return [
    {
      id: 'qw3-tts-flash',
      kind: 'speech',
      vendor: 'dashscope',
      upstream: 'qwen3-tts-flash',
      protocol: 'multimodal',
      speech: {
        voices: [...SHARED_VOICES, ...BASIC_VOICES],
        formats: ['mp3', 'wav', 'pcm'],
        takesInstructions: false,
        maxCharacters,
      },
      aliases: ['qwen3-tts-flash'],
      displayName: 'Qwen3 TTS Flash',
    },
    {
      id: 'qw3-tts-instruct-flash',
      kind: 'speech',
      vendor: 'dashscope',
      upstream: 'qwen3-tts-instruct-flash',
      protocol: 'multimodal',
      speech: { voices: SHARED_VOICES, formats: ['wav', 'pcm'], takesInstructions: true, maxCharacters },
      aliases: ['qwen3-tts-instruct-flash'],
      displayName: 'Qwen3 TTS Instruct Flash',
    },
  ]
}
