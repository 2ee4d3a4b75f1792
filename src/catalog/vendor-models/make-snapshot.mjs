// Writes snapshot.json from the public catalog of models.dev: node src/catalog/vendor-models/make-snapshot.mjs api.json 2026-07-02
import { readFileSync, writeFileSync } from 'node:fs'
import { build } from 'esbuild'

/** Vendors whose models are listed; who they are at models.dev, `built-in-models.ts` says. */
const VENDORS =
  `openai anthropic gemini dashscope azure bedrock vertex baseten cerebras cloudflare cohere deepinfra deepseek fireworks
  groq huggingface minimax mistral moonshot nebius novita nvidia openrouter perplexity siliconflow together xai zai`.split(
    /\s+/,
  )

/** What models.dev leaves out, from the vendors' own lists of models and prices; the rows' format is that of vendor-model.ts. */
const OTHERS = {
  openai: [
    'gpt-4o-audio-preview|GPT-4o Audio|c|128000|16384|ta|ta|fst|20241001|',
    'gpt-4o-mini-transcribe||a|16000||ta|t||20250320|',
    'gpt-4o-transcribe||a|16000||ta|t||20250320|',
    'omni-moderation-latest||o|||ti|t||20240926|',
    'tts-1|TTS-1|s|||t|a||20231106|15',
    'tts-1-hd|TTS-1 HD|s|||t|a||20231106|30',
    'whisper-1|Whisper|a|||a|t||20230301|',
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

const OPENAI_RESPONSES_ONLY =
  /^(?:o\d-pro|gpt-5(?:\.\d)?-(?:pro|codex.*)|codex-mini.*|.*-deep-research|computer-use-preview)$/

/**
 * What models.dev does not tell: chat models without chat completions (OpenAI, "Models", the endpoints of each; Azure, "Reasoning";
 * Perplexity, "Agent API").
 */
const RESPONSES_ONLY = { openai: OPENAI_RESPONSES_ONLY, azure: OPENAI_RESPONSES_ONLY, perplexity: /./ }

function isResponsesOnly(vendor, { id, kinds }) {
  return kinds.includes('chat') && RESPONSES_ONLY[vendor]?.test(id) === true
}

const [path, date] = process.argv.slice(2)
if (path === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(date ?? '')) {
  throw new TypeError('usage: make-snapshot.mjs api.json YYYY-MM-DD')
}

const folder = import.meta.dirname
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
const code = `data:text/javascript;base64,${Buffer.from(bundle.outputFiles[0].text).toString('base64')}`
const { MODELS_DEV_PROVIDERS, modelsFromModelsDev, writeVendorModel } = await import(code)

const catalog = JSON.parse(readFileSync(path, 'utf8'))
const vendors = new Set([...VENDORS, ...Object.keys(OTHERS)])
const models = Object.fromEntries(
  [...vendors].sort().map((vendor) => {
    const [provider = vendor] = MODELS_DEV_PROVIDERS[vendor] ?? []
    const found = catalog[provider] === undefined ? [] : modelsFromModelsDev(provider, catalog[provider])
    const listed = found.map((model) =>
      writeVendorModel(isResponsesOnly(vendor, model) ? { ...model, protocol: 'responses' } : model),
    )
    return [vendor, [...listed, ...(OTHERS[vendor] ?? [])].sort()]
  }),
)
const source = `models.dev at ${date} (MIT licence, Copyright (c) 2025 models.dev) and the vendors' own lists; made by make-snapshot.mjs`
writeFileSync(`${folder}/snapshot.json`, `${JSON.stringify({ source, date, models }, null, 1)}\n`)
