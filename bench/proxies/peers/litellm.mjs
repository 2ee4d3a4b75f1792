import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../find-program.mjs'
import { freePort, reasonAgainst, startProgram } from '../../program-process.mjs'
import { API_KEY } from '../../requests.mjs'

export const name = 'peers/litellm'
export const title = 'LiteLLM'
export const isPeer = true
export const isNodeProgram = false
/** Whether the proxy translates model ids. LiteLLM may return either id. */
export const isTranslating = false

/** Public id and vendor's id of each model in its scenarios. */
const MODELS = [
  ['bench-chat', 'gpt-bench'],
  ['bench-chat-paced', 'gpt-bench-paced'],
  ['bench-chat-brief', 'gpt-bench-brief'],
  ['bench-chat-burst', 'gpt-bench-burst'],
  ['bench-chat-slow', 'gpt-bench-slow'],
  ['bench-embedding', 'embedding-bench'],
  ['bench-edit', 'image-bench'],
]

/** Timeout of the start in milliseconds. Its imports take long. */
const READY_WITHIN_MS = 120_000

export const missing = () => reasonAgainst('litellm', '')

export function version() {
  const program = findProgram('litellm')
  if (program === undefined) return undefined
  return /\d+\.\d+\.\d+\S*/.exec(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout)?.[0]
}

/** LiteLLM's proxy with one worker, a key, and no database: "CLI Arguments" and "Config.yaml" in its documentation. */
export async function launch({ upstreamPort, core }) {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-litellm-'))
  const file = join(folder, 'config.yaml')
  // Every JSON document is a YAML document.
  writeFileSync(file, JSON.stringify(configuration(upstreamPort), undefined, 2))
  const command = ['--config', file, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1']
  return startProgram([findProgram('litellm'), ...command], {
    core,
    port,
    readyWithinMs: READY_WITHIN_MS,
    // Otherwise it fetches its list of prices at start.
    environment: { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    onStop: () => rmSync(folder, { recursive: true, force: true }),
  })
}

function configuration(upstreamPort) {
  const apiBase = `http://127.0.0.1:${upstreamPort}/v1`
  return {
    model_list: MODELS.map(([publicId, vendorId]) => ({
      model_name: publicId,
      litellm_params: { model: `openai/${vendorId}`, api_base: apiBase, api_key: 'sk-vendor-bench' },
    })),
    general_settings: { master_key: API_KEY },
  }
}
