// Refreshes snapshot.json from npm packages, and prints the changes: node src/catalog/vendor-models/make-snapshot.mjs
//   --packages FOLDER          folder of the packages in PACKAGES, named by `npm pack`; without it they are downloaded
//   --models-dev FILE DAY      read the api.json of models.dev of that day, instead of its data in the snapshot
// The current snapshot is the base. A model is removed when no source lists it any more.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runInNewContext } from 'node:vm'
import { build } from 'esbuild'

/** Packages to read, keyed by the letter of their rows. For a refresh, enter the newest version and its day: `npm view NAME time`. */
const PACKAGES = {
  p: { name: '@earendil-works/pi-ai', version: '1.6.0', date: '2026-11-20', licence: 'MIT licence' },
  g: {
    name: '@pydantic/genai-prices',
    version: '0.1.8',
    date: '2026-09-23',
    licence: 'MIT licence, Copyright (c) Pydantic Services Inc. 2025 to present',
  },
}

/** Vendors whose models are listed. `built-in-models.ts` has their ids at models.dev. */
const VENDORS =
  `openai anthropic gemini dashscope azure bedrock vertex baseten cerebras cloudflare cohere deepinfra deepseek fireworks
  groq huggingface minimax mistral moonshot nebius novita nvidia openrouter perplexity siliconflow together xai zai voyage`.split(
    /\s+/,
  )

/** Ids of the vendors in pi-ai, whose chat models all support tools. */
const PI_PROVIDERS = {
  openai: 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
  azure: 'azure',
  bedrock: 'amazon-bedrock',
  vertex: 'google-vertex',
  baseten: 'baseten',
  cerebras: 'cerebras',
  cloudflare: 'cloudflare-workers-ai',
  deepseek: 'deepseek',
  fireworks: 'fireworks',
  groq: 'groq',
  huggingface: 'huggingface',
  minimax: 'minimax',
  mistral: 'mistral',
  moonshot: 'moonshotai',
  nvidia: 'nvidia',
  openrouter: 'openrouter',
  together: 'together',
  xai: 'xai',
  zai: 'zai',
}

/** Ids of the vendors in genai-prices. Only exact ids count: its patterns give speech models the price of their chat models. */
const GENAI_PROVIDERS = {
  openai: 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
  vertex: 'google',
  voyage: 'voyageai',
}

/**
 * Models that these sources lack, from the vendors' own lists of models and prices and the types of their SDKs, in the format of
 * vendor-model.ts.
 */
const OTHERS = {
  openai: [
    'gpt-4o-audio-preview|GPT-4o Audio|c|128000|16384|ta|ta|fst|20241001|',
    'gpt-4o-mini-audio-preview|GPT-4o mini Audio|c|128000|16384|ta|ta|fst',
    'gpt-4o-mini-transcribe||a|16000||ta|t||20250320|',
    'gpt-4o-mini-tts||s|||t|a',
    'gpt-4o-transcribe-diarize||a|16000||ta|t',
    'gpt-4o-transcribe||a|16000||ta|t||20250320|',
    'gpt-5.1-mini||c|400000||t|t',
    'gpt-6-rosalind||c|||t|t',
    'gpt-6.2-astra-law||c|||t|t',
    'gpt-audio-mini|GPT Audio mini|c|128000|16384|ta|ta|ft',
    'gpt-image-2.5-flare|GPT Image 2.5 Flare|im|||ti|i||20260908|5,30,1.25,,,,8',
    'gpt-image-2.5-sunburst|GPT Image 2.5 Sunburst|im|||ti|i||20260908|5,30,1.25,,,,8',
    'gpt-image-2.6-flare|GPT Image 2.6 Flare|im|||ti|i||20261104|5,30,1.25,,,,8',
    'gpt-image-2.6-sunburst|GPT Image 2.6 Sunburst|im|||ti|i||20261104|5,30,1.25,,,,8',
    'gpt-rosalind-research||c|||t|t',
    'gpt-transcribe||a|||ta|t',
    'omni-moderation-2024-09-26||o|||ti|t||20240926|',
    'omni-moderation-latest||o|||ti|t||20240926|',
    'tts-1|TTS-1|s|||t|a||20231106|15',
    'tts-1-hd|TTS-1 HD|s|||t|a||20231106|30',
    'whisper-1|Whisper|a|||a|t||20230301|',
  ],
  gemini: [
    'gemini-3-pro-image|Nano Banana Pro|im|65536|32768|ti|ti||20260528|',
    'gemini-3.1-flash-image|Nano Banana 2|im|131072|32768|ti|ti||20260528|',
    'gemini-3.1-flash-lite-image||im|||ti|ti',
    'gemini-3.1-flash-tts-preview||s|||t|a',
    'gemini-3.5-transcribe||a|||ta|t',
    'gemini-3.8-flash-lite-tts||s|||t|a',
    'gemini-3.8-flash-tts||s|||t|a',
    'gemini-nano-banana-2.1|Nano Banana 2.1|im|||ti|ti',
    'gemini-robotics-er-1.6-preview||c|||tiv|t',
    'nano-banana-pro-preview|Nano Banana Pro Preview|im|||ti|ti',
  ],
  anthropic: [
    // Anthropic, "Claude Fable 5": same specifications and prices as that model.
    'claude-mythos-5|Claude Mythos 5|c|1000000|128000|tip|t|rf||10,50,1,12.5||lmhxa',
    'claude-mythos-5-1|Claude Mythos 5.1|c|||tip|t|rf',
    'claude-mythos-5-2|Claude Mythos 5.2|c|1000000|128000|tip|t|rf|20261109',
  ],
  bedrock: [
    'amazon.nova-2-multimodal-embeddings-v1:0|Nova Multimodal Embeddings|e|8192|3072|tiav|||20251028|0.135',
    'amazon.titan-embed-text-v1|Titan Embeddings G1 - Text|e|8192|1536|t|||20230928|0.1',
    'amazon.titan-embed-text-v2:0|Titan Text Embeddings V2|e|8192|1024|t|||20240430|0.02',
    'cohere.embed-english-v3|Embed English 3|e|512|1024|t|||20231102|0.1',
    'cohere.embed-multilingual-v3|Embed Multilingual 3|e|512|1024|t|||20231102|0.1',
    'cohere.embed-v4:0|Embed 4|e|128000|1536|ti|||20250415|0.12',
  ],
  voyage: [
    'voyage-3.5||e|32000||t|||20250520|0.06',
    'voyage-3.5-lite||e|32000||t|||20250520|0.02',
    'voyage-3-large||e|32000||t|||20250107|0.18',
    'voyage-code-3||e|32000||t|||20241204|0.18',
    'voyage-finance-2||e|32000||t|||20240603|0.12',
    'voyage-law-2||e|16000||t|||20240415|0.12',
  ],
}

/** Day on which PRICES was read. */
const PRICES_DATE = '2026-11-29'

/**
 * Prices by prompt size and by thinking mode, which the packages lack and models.dev lists since August 2026. They apply to the
 * international deployment and come from models.dev and LiteLLM, both of which cite the vendor's page "Model pricing". A newer
 * `--models-dev` replaces them. The format is that of vendor-model.ts.
 */
const PRICES = {
  dashscope: {
    'qwen-flash': '0.05,0.4,0.01,0.063;256000:0.25,2,0.05,0.313',
    'qwen-plus': '0.4,1.2,,,,,,,,4;256000:1.2,3.6,,,,,,,,12',
    'qwen-turbo': '0.05,0.2,0.01,,,,,,,0.5',
    'qwen3-coder-30b-a3b-instruct': '0.45,2.25;32000:0.75,3.75;128000:1.2,6;256000:2.4,14.4',
    'qwen3-coder-480b-a35b-instruct': '1.5,7.5;32000:2.7,13.5;128000:4.5,22.5;256000:9,90',
    'qwen3-coder-flash': '0.3,1.5,0.06,0.375;32000:0.5,2.5,0.1,0.625;128000:0.8,4,0.16,1;256000:1.6,9.6,0.32,2',
    'qwen3-coder-plus': '1,5,0.2,1.25;32000:1.8,9,0.36,2.25;128000:3,15,0.6,3.75;256000:6,60,1.2,7.5',
    'qwen3-max': '1.2,6,0.24,1.5;32000:2.4,12,0.48,3;128000:3,15,0.6,3.75',
    'qwen3-vl-plus': '0.2,1.6,0.04,0.25;32000:0.3,2.4,0.06,0.375;128000:0.6,4.8,0.12,0.75',
    'qwen3.5-plus': '0.4,2.4,0.04,0.5;256000:0.5,3,0.05,0.625',
    'qwen3.6-flash': '0.25,1.5,0.025,0.3125;256000:1,4,0.1,1.25',
    'qwen3.6-max-preview': '1.3,7.8,0.13,1.625;128000:2,12,0.2,2.5',
  },
}

/** Day on which the lists below were read. */
const LISTS_DATE = '2026-11-28'

/**
 * Days on which vendors retire models, from their pages of deprecations (OpenAI, "Deprecations"; Gemini API, "Gemini
 * deprecations", only fixed days and no earliest possible ones) and reports about them. The SDK of Anthropic lists its own days.
 */
const RETIREMENTS = {
  openai: {
    '2024-09-13': 'gpt-3.5-turbo-0301 gpt-3.5-turbo-0613 gpt-3.5-turbo-16k-0613 gpt-3.5-turbo-16k',
    '2024-12-06': 'gpt-4-vision-preview',
    '2025-07-28': 'o1-preview o1-preview-2024-09-12',
    '2025-10-27': 'o1-mini o1-mini-2024-09-12 text-moderation-latest text-moderation-stable',
    '2025-06-06': 'gpt-4-32k gpt-4-32k-0314 gpt-4-32k-0613',
    '2026-01-16': 'codex-mini-latest',
    '2026-02-17': 'chatgpt-4o-latest',
    '2026-03-26': 'gpt-4-0314 gpt-4-0125-preview gpt-4-turbo-preview',
    '2026-05-12': 'dall-e-2 dall-e-3',
    '2026-07-23':
      'computer-use-preview computer-use-preview-2025-03-11 gpt-4o-audio-preview-2024-12-17 gpt-4o-mini-audio-preview-2024-12-17 gpt-4o-mini-search-preview-2025-03-11 gpt-4o-search-preview-2025-03-11 gpt-5-chat-latest gpt-5-codex gpt-5.1-chat-latest gpt-5.1-codex gpt-5.1-codex-max gpt-5.1-codex-mini o3-deep-research o3-deep-research-2025-06-26 o4-mini-deep-research o4-mini-deep-research-2025-06-26 gpt-5.2-codex',
    '2026-08-10': 'gpt-5.2-chat-latest gpt-5.3-chat-latest',
    '2026-10-23':
      'gpt-3.5-turbo gpt-3.5-turbo-0125 gpt-4 gpt-4-0613 gpt-4-1106-preview gpt-4-turbo gpt-4-turbo-2024-04-09 gpt-4o-2024-05-13 o1 o1-2024-12-17 o3-mini o3-mini-2025-01-31 o1-pro o1-pro-2025-03-19 o4-mini o4-mini-2025-04-16 gpt-4.1-nano gpt-4.1-nano-2025-04-14 gpt-image-1',
    '2026-12-01': 'gpt-image-1-mini gpt-image-1.5 chatgpt-image-latest',
    '2026-12-11':
      'gpt-5 gpt-5-2025-08-07 gpt-5-mini gpt-5-mini-2025-08-07 gpt-5-nano gpt-5-nano-2025-08-07 gpt-5-pro gpt-5-pro-2025-10-06 o3 o3-2025-04-16 o3-pro o3-pro-2025-06-10',
    '2027-01-06': 'tts-1 tts-1-hd gpt-4o-mini-tts',
    '2027-01-14':
      'gpt-4o gpt-4o-2024-08-06 gpt-4o-2024-11-20 gpt-4o-mini gpt-4o-mini-2024-07-18 gpt-4.1 gpt-4.1-2025-04-14 gpt-4.1-mini gpt-4.1-mini-2025-04-14',
    '2027-01-20': 'gpt-4o-audio-preview',
    '2027-02-26': 'whisper-1 gpt-4o-transcribe gpt-4o-mini-transcribe gpt-4o-transcribe-diarize',
    '2027-04-01': 'gpt-5.1 gpt-5.3-codex gpt-5.4-nano',
  },
  gemini: { '2026-03-09': 'gemini-3-pro-preview', '2026-12-01': 'gemini-2.5-pro gemini-2.5-flash' },
}

/** Facts that the report compares. */
const COMPARED = {
  price: ({ price, tiers }) => JSON.stringify([price, ...tiers]).replaceAll('"', ''),
  limits: ({ limits }) => `${limits.contextTokens ?? '?'}/${limits.maxOutputTokens ?? limits.dimensions ?? '?'}`,
  'later price': ({ laterPrice }) => JSON.stringify(laterPrice ?? '').replaceAll('"', ''),
  retirement: ({ retires = 0 }) => (retires === 0 ? '' : new Date(retires * 1000).toISOString().slice(0, 10)),
}

const OPENAI_RESPONSES_ONLY =
  /^(?:o\d-pro|gpt-5(?:\.\d)?-(?:pro|codex.*)|codex-mini.*|.*-deep-research|computer-use-preview|gpt-daybreak-.*|gpt-.*-(?:cyber|rosalind|law)|gpt-rosalind-.*)$/

/**
 * Chat models without chat completions, which no catalog marks (OpenAI, "Models", the endpoints of each, and the ids of
 * `ResponsesModel` that are not in `ChatModel` in its SDK; Azure, "Reasoning"; Perplexity, "Agent API").
 */
const RESPONSES_ONLY = { openai: OPENAI_RESPONSES_ONLY, azure: OPENAI_RESPONSES_ONLY, perplexity: /./ }

/** Inputs of models that read images, from the vendors' documentation; pi-ai lists text and images only. */
const MORE_INPUTS = {
  openai: ['pdf'],
  anthropic: ['pdf'],
  gemini: ['audio', 'video', 'pdf'],
  vertex: ['audio', 'video', 'pdf'],
}

/** Prices that pi-ai lists. */
const PI_AMOUNTS = new Set(['input', 'output', 'cachedInput', 'cacheWrite'])

/** Members of prices in genai-prices. */
const GENAI_FIELDS = {
  input_mtok: 'input',
  output_mtok: 'output',
  cache_read_mtok: 'cachedInput',
  cache_write_mtok: 'cacheWrite',
  input_audio_mtok: 'inputAudio',
  input_image_mtok: 'inputImage',
  output_image_mtok: 'outputImage',
  input_audio_hours: 'audioHour',
}

const { values: options, positionals } = parseArgs({
  options: { packages: { type: 'string' }, 'models-dev': { type: 'string' } },
  allowPositionals: true,
})
const folder = import.meta.dirname
const {
  MODALITIES,
  MODELS_DEV_PROVIDERS,
  PRICED_BY_THINKING_MODE,
  dateSeconds,
  decimalText,
  EFFORTS,
  modelsFromModelsDev,
  readVendorModel,
  writeVendorModel,
} = await sourceModule()
const before = JSON.parse(readFileSync(`${folder}/snapshot.json`, 'utf8'))
const { pi, genai } = readPackages()
const retirements = readRetirements()
let modelsDevDate = before.sources?.m.slice(-10) ?? before.date
const modelsDev = readModelsDev()

const date = Object.values(PACKAGES)
  .map(({ date }) => date)
  .sort()
  .at(-1)
const models = Object.fromEntries(VENDORS.toSorted().map((vendor) => [vendor, modelsOf(vendor)]))
const sources = {
  m: `models.dev (MIT licence, Copyright (c) 2025 models.dev), ${modelsDevDate}`,
  ...Object.fromEntries(
    Object.entries(PACKAGES).map(([letter, { name, version, date, licence }]) => [
      letter,
      `${name} ${version} (${licence}), ${date}`,
    ]),
  ),
  t: `the price lists of models.dev and LiteLLM (MIT licence, Copyright (c) 2023 Berri AI), ${PRICES_DATE}`,
  v: `the vendors' own lists and the types of their SDKs, ${LISTS_DATE}`,
}
const source = `Made by make-snapshot.mjs of public lists (MIT licence) such as models.dev; the last field of a line says which of \`sources\` it is from`
writeFileSync(`${folder}/snapshot.json`, `${JSON.stringify({ source, sources, date, models }, null, 2)}\n`)
report()

/** Modules of the library that read and write lines. */
async function sourceModule() {
  const bundle = await build({
    stdin: {
      contents: `export * from './from-models-dev.ts'; export * from './vendor-model.ts'; export * from '../models/built-in-models.ts'`,
      resolveDir: folder,
      loader: 'ts',
    },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
  })
  return import(`data:text/javascript;base64,${Buffer.from(bundle.outputFiles[0].text).toString('base64')}`)
}

function readPackages() {
  const work = mkdtempSync(join(tmpdir(), 'snapshot-'))
  try {
    const [piFolder, genaiFolder] = ['p', 'g'].map((letter) => unpack(PACKAGES[letter], join(work, letter)))
    const pi = (provider) => {
      const apis = JSON.parse(readFileSync(`${piFolder}/dist/providers/data/${provider}.json`, 'utf8'))
      return Object.values(apis)
        .flatMap((models) => Object.values(models))
        .filter(({ type }) => type === 'chat')
    }
    const providers = ['openrouter', ...Object.values(PI_PROVIDERS)]
    const text = readFileSync(`${genaiFolder}/dist/index.js`, 'utf8')
    // The bundle begins with the list and does not export it.
    const list = runInNewContext(`(${text.slice(text.indexOf('['), text.indexOf('\n]') + 2)})`)
    return {
      pi: new Map(providers.map((provider) => [provider, pi(provider)])),
      genai: new Map(list.map(({ id, models }) => [id, models])),
    }
  } finally {
    rmSync(work, { recursive: true })
  }
}

function unpack({ name, version }, target) {
  const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`
  const from = options.packages ?? target
  mkdirSync(target, { recursive: true })
  if (!existsSync(join(from, file)))
    execFileSync('npm', ['pack', `${name}@${version}`, '--pack-destination', from], { stdio: 'ignore' })
  execFileSync('tar', ['-xzf', join(from, file), '-C', target])
  return join(target, 'package')
}

/** Retirement days by vendor and id: warnings of Anthropic's SDK, and RETIREMENTS. */
function readRetirements() {
  const { resolve } = createRequire(import.meta.url)
  const sdk = createRequire(resolve('@anthropic-ai/sdk'))
  const { DEPRECATED_MODELS } = sdk('./internal/data/deprecated-models.js')
  const ends = new Map()
  for (const [id, day] of Object.entries(DEPRECATED_MODELS))
    ends.set(`anthropic/${id}`, Date.parse(`${day.replace(/(\d)(?:st|nd|rd|th)/, '$1')} UTC`) / 1000)
  for (const [vendor, days] of Object.entries(RETIREMENTS))
    for (const [day, ids] of Object.entries(days))
      for (const id of ids.split(' ')) ends.set(`${vendor}/${id}`, dateSeconds(day))
  return ends
}

function readModelsDev() {
  const file = options['models-dev']
  if (file === undefined) return undefined
  modelsDevDate = positionals[0] ?? ''
  if (dateSeconds(modelsDevDate) === 0) throw new TypeError('usage: make-snapshot.mjs --models-dev api.json YYYY-MM-DD')
  return JSON.parse(readFileSync(file, 'utf8'))
}

function modelsOf(vendor) {
  const found = new Map(baseOf(vendor).map((model) => [model.id, model]))
  for (const line of OTHERS[vendor] ?? []) {
    const model = readVendorModel(line)
    found.set(model.id, { ...model, source: 'v' })
  }
  const listed = pi.get(PI_PROVIDERS[vendor]) ?? []
  for (const entry of listed)
    if (!entry.id.endsWith(':batch')) found.set(entry.id, fromPi(vendor, entry, found.get(entry.id)))
  for (const [id, model] of found) if (model.source === '') found.delete(id)
  for (const [id, model] of found) found.set(id, withMore(vendor, model))
  for (const [id, text] of Object.entries(modelsDevDate > PRICES_DATE ? {} : (PRICES[vendor] ?? {}))) {
    const model = found.get(id)
    const { price, tiers } = readVendorModel(`${'|'.repeat(9)}${text}`)
    if (model !== undefined) found.set(id, { ...model, price, tiers, source: `${model.source}t` })
  }
  return [...found.values()].map(writeVendorModel).sort()
}

/** Models of models.dev: from a new file, or from the rows of the snapshot that came from models.dev. */
function baseOf(vendor) {
  const withSource = (model, letters) => ({ ...model, source: letters })
  if (modelsDev === undefined) {
    const lines = before.models[vendor] ?? []
    return lines
      .map(readVendorModel)
      .map((model) => withMode(vendor, withSource(model, (model.source ?? 'm').replace(/[^m]/g, ''))))
  }
  const [provider = vendor] = MODELS_DEV_PROVIDERS[vendor] ?? []
  const listed = modelsDev[provider] === undefined ? [] : modelsFromModelsDev(provider, modelsDev[provider])
  return listed.map((model) => withSource(model, 'm'))
}

/** Lists of models.dev write the price of all output in thinking mode as a price of reasoning tokens. */
function withMode(vendor, model) {
  if (!PRICED_BY_THINKING_MODE.has(vendor) || model.price?.reasoning === undefined) return model
  const { reasoning: thinkingOutput, ...price } = model.price
  return { ...model, price: { ...price, thinkingOutput } }
}

/** Returns a model of pi-ai with additional facts of other sources. */
function fromPi(vendor, listed, known) {
  // The package knows less about models at Azure than about the same models at OpenAI. models.dev lists some chat models as image
  // models.
  const twin = vendor === 'azure' ? pi.get('openai').find(({ id }) => id === listed.id) : undefined
  const entry = { ...listed, ...(twin && { compat: twin.compat, thinkingLevelMap: twin.thinkingLevelMap }) }
  const base =
    known?.kinds.includes('chat') === false
      ? { ...known, kinds: undefined, outputModalities: undefined, abilities: undefined }
      : known
  const thinks = entry.reasoning === true
  const compat = entry.compat ?? {}
  const isStrict =
    compat.supportsStrictMode === true || compat.supportsStrictTools === true || /^(?:gemini|vertex)$/.test(vendor)
  // OpenAI's reasoning models do not accept temperature; according to models.dev, neither does Claude Fable.
  const isWarm =
    compat.supportsTemperature !== false &&
    !/claude-fable/.test(entry.id) &&
    !(thinks && /^(?:openai|azure)$/.test(vendor))
  const reads = new Set([...entry.input, ...(base?.inputModalities ?? [])])
  if (reads.has('image')) for (const more of MORE_INPUTS[vendor] ?? []) reads.add(more)
  const efforts = effortsOf(entry)
  const context = contextOf(entry) ?? base?.limits.contextTokens
  const { price = base?.price, tiers } = pricesOf(entry.cost, base)
  return {
    ...base,
    id: entry.id,
    displayName: base?.displayName ?? entry.name,
    kinds: base?.kinds ?? ['chat'],
    limits: {
      ...(context === undefined ? {} : { contextTokens: context }),
      ...(entry.maxTokens === undefined ? {} : { maxOutputTokens: entry.maxTokens }),
    },
    inputModalities: MODALITIES.filter((modality) => reads.has(modality)),
    outputModalities: base?.outputModalities ?? ['text'],
    abilities:
      base?.abilities ??
      [thinks && 'reasoning', 'tool_call', isStrict && 'structured_output', isWarm && 'temperature'].filter(Boolean),
    created: base?.created ?? 0,
    ...(price === undefined ? {} : { price }),
    tiers,
    ...(efforts.length === 0 ? {} : { efforts }),
    source: `${base?.source ?? ''}p`,
  }
}

/** pi-ai lists the prompt size up to which a price applies as the context size; its list of OpenRouter has the real context size. */
function contextOf({ id, cost, contextWindow }) {
  if (cost.tiers?.[0]?.inputTokensAbove !== contextWindow) return contextWindow
  return pi.get('openrouter').find((other) => other.id === `openai/${id}`)?.contextWindow
}

/** xAI, "Reasoning": models before Grok 4.6 accept no effort above `high`. */
const WITHOUT_XHIGH = /^grok-4\.[0-5](?!\d)/

/** Thinking levels that are sent under their own names; also low, medium and high if a list has none of them. */
function effortsOf({ id, thinkingLevelMap: levels, reasoning, compat = {} }) {
  if (levels === undefined || reasoning !== true || compat.supportsReasoningEffort === false) return []
  const names = Object.values({ low: 'low', medium: 'medium', high: 'high', ...levels }).map((level) =>
    String(level).toLowerCase(),
  )
  return EFFORTS.filter((effort) => names.includes(effort) && !(effort === 'xhigh' && WITHOUT_XHIGH.test(id)))
}

/**
 * Only zeros mean an unknown price, and a zero for a cache means an unlisted one. Other amounts of the base stay if input and
 * output cost the same.
 */
function pricesOf(cost, base) {
  if (!(cost.input > 0 || cost.output > 0)) return { price: undefined, tiers: base?.tiers ?? [] }
  const price = amountsOf(cost)
  const same = base?.price?.input === price.input && base?.price?.output === price.output
  const { cachedInput, ...others } = (same && base.price) || {}
  const kept = cachedInput === undefined || cachedInput === '0' ? others : { cachedInput, ...others }
  return { price: { ...kept, ...price }, tiers: tiersOf(cost) }
}

function tiersOf({ tiers = [] }) {
  return tiers.map(({ inputTokensAbove, ...cost }) => ({ inputTokensAbove, ...amountsOf(cost) }))
}

function amountsOf({ input, output, cacheRead, cacheWrite }) {
  return {
    input: decimalText(input),
    output: decimalText(output),
    ...(cacheRead > 0 ? { cachedInput: decimalText(cacheRead) } : {}),
    ...(cacheWrite > 0 ? { cacheWrite: decimalText(cacheWrite) } : {}),
  }
}

/** Adds facts of other sources: prices of audio and images, prices of batches, the day of retirement, the protocol. */
function withMore(vendor, model) {
  const entry = genaiEntry(vendor, model.id)
  const speaks = model.kinds.includes('chat') && model.outputModalities.includes('audio')
  const told = entry === undefined || speaks ? {} : genaiPrice(entry)
  // Newer than models.dev but older than pi-ai.
  const isNewer = model.source === 'm' || model.source === 'v'
  const base =
    isNewer && told.input !== undefined && model.kinds[0] !== 'speech'
      ? { ...model.price, ...told }
      : { ...told, ...model.price }
  const price = Object.keys(base).length === 0 ? model.price : base
  const batch = batchOf(vendor, { ...model, price }, entry)
  const isTold = Object.entries(told).some(
    ([field, amount]) => price[field] === amount && !(model.source.includes('p') && PI_AMOUNTS.has(field)),
  )
  const retires = retirements.get(`${vendor}/${model.id}`)
  const laterPrice = entry === undefined ? undefined : laterPriceOf(entry, price)
  const { batchPrice: _price, batchTiers: _tiers, retires: _retires, laterPrice: _later, ...rest } = model
  return {
    ...rest,
    ...(price === undefined ? {} : { price }),
    ...batch,
    ...(laterPrice === undefined ? {} : { laterPrice }),
    ...(retires === undefined ? {} : { retires }),
    ...(model.kinds.includes('chat') && RESPONSES_ONLY[vendor]?.test(model.id) === true
      ? { protocol: 'responses' }
      : {}),
    source: `${model.source}${isTold || laterPrice !== undefined ? 'g' : ''}`,
  }
}

function genaiEntry(vendor, id) {
  const isIt = (match) =>
    match.equals === id ||
    (match.regex?.endsWith('\\d{2}$') && new RegExp(match.regex).test(id)) ||
    match.or?.some(isIt) === true
  return genai.get(GENAI_PROVIDERS[vendor])?.find((entry) => entry.id === id || isIt(entry.match))
}

/** Amounts on the day of the newest package. */
function genaiPrice({ prices }) {
  const dated = Array.isArray(prices) ? prices : [{ prices }]
  return genaiAmounts(dated.filter(({ constraint }) => (constraint?.start_date ?? '') <= date).at(-1)?.prices ?? {})
}

/** Returns the price after an introductory one, with its day. Both sources must agree on the current price. */
function laterPriceOf({ prices }, price) {
  const next = Array.isArray(prices)
    ? prices.find(({ constraint }) => (constraint?.start_date ?? '') > date)
    : undefined
  const now = genaiPrice({ prices })
  if (next === undefined || now.input !== price?.input || now.output !== price?.output) return undefined
  return { from: dateSeconds(next.constraint.start_date), ...genaiAmounts(next.prices) }
}

/** Returns nothing if answers are audio or video, for which there is no meter. */
function genaiAmounts(amounts) {
  if (amounts.output_audio_mtok !== undefined || amounts.output_video_mtok !== undefined) return {}
  return Object.fromEntries(
    Object.entries(GENAI_FIELDS).flatMap(([field, name]) => {
      const amount = amounts[field]?.base ?? amounts[field]
      return amount > 0 ? [[name, decimalText(amount)]] : []
    }),
  )
}

/**
 * Batch prices: OpenRouter's `:batch` price of a model if it charges the vendor's price, and half of the price if genai-prices
 * lists it. Cached tokens cost as much as others if no source has their price.
 */
function batchOf(vendor, { id, price, tiers }, entry) {
  if (price === undefined) return {}
  if (/Batch (?:API offers|and Flex tiers offer) (?:a )?50% discount/.test(entry?.price_comments ?? '')) {
    const { cachedInput: _cached, ...rest } = price
    return {
      batchPrice: Object.fromEntries(
        Object.entries(rest).map(([field, amount]) => [field, decimalText(Number(amount) / 2)]),
      ),
    }
  }
  if (vendor !== 'openai' && vendor !== 'anthropic') return {}
  const name = `${vendor}/${id.replace(/-\d{8}$/, '').replace(/-(\d)-(\d)$/, '-$1.$2')}`
  const [usual, batch] = [name, `${name}:batch`].map((one) => pi.get('openrouter').find((other) => other.id === one))
  if (usual === undefined || batch === undefined) return {}
  if (decimalText(usual.cost.input) !== price.input || decimalText(usual.cost.output) !== price.output) return {}
  const batchTiers = tiers.length === 0 ? [] : tiersOf(batch.cost)
  return { batchPrice: amountsOf(batch.cost), ...(batchTiers.length === 0 ? {} : { batchTiers }) }
}

function report() {
  for (const [vendor, lines] of Object.entries(models)) {
    const [old, now] = [before.models[vendor] ?? [], lines].map(
      (list) => new Map(list.map(readVendorModel).map((model) => [model.id, model])),
    )
    const changes = []
    for (const [id, model] of now) {
      const was = old.get(id)
      if (was === undefined) changes.push(`+ ${id}`)
      else {
        for (const [word, of] of Object.entries(COMPARED)) {
          const [from, to] = [of(was), of(model)]
          if (from !== to) changes.push(`  ${id}: ${word} ${from || 'none'} -> ${to || 'none'}`)
        }
      }
    }
    for (const id of old.keys()) if (!now.has(id)) changes.push(`- ${id}`)
    process.stdout.write(`${vendor}: ${old.size} -> ${now.size} models\n`)
    for (const change of changes) process.stdout.write(`  ${change}\n`)
  }
}
