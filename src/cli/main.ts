#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { type Preset, presets } from '../vendors/presets/presets.ts'
import { accountsCommand } from './accounts-command.ts'
import { catalogCommand, modelsCommand } from './catalog-command.ts'
import { commandArguments } from './command-arguments.ts'
import { presetVariables } from './configured-vendors.ts'
import { holdsCommand } from './holds-command.ts'
import { keysCommand } from './keys-command.ts'
import { type RunningServer, serve } from './serve.ts'
import { SettingError } from './setting-values.ts'
import { consoleLogger, type Terminal } from './terminal.ts'
import { usageCommand } from './usage-command.ts'
import { webhooksCommand } from './webhooks-command.ts'

const HELP = `signalbox: an AI gateway

usage
  signalbox serve [--sandbox]             serve the gateway on http://127.0.0.1:8787
  signalbox models [--all]                list the models of the built-in catalog; with --all every vendor's too
  signalbox catalog update                write newer models and prices of the configured vendors; show what changed
      [--from FILE|URL] [--models FILE] [--prices FILE] [--markup 1.2] [--accept]

  signalbox accounts list                 accounts by id
      [--search TEXT] [--limit 100] [--cursor CURSOR]
  signalbox accounts create               make an account
      [--id ID] [--tier paid|free] [--cap 50/month|5/day]
  signalbox accounts credit ID AMOUNT     add dollars; a credit id is credited once only
      [--id CREDIT_ID] [--expires 2026-12-31]
  signalbox accounts adjust ID AMOUNT     correct a balance; a negative amount takes money
      --reason TEXT [--id ADJUSTMENT_ID]
  signalbox accounts refund LINE          give money of a charge back, by the id of its journal line
      --reason TEXT [--amount 1.50] [--id REFUND_ID]
  signalbox accounts show ID              balance, held money, tier and cap
  signalbox accounts statement ID         a month’s opening balance, sums and closing balance
      [--month 2026-11]
  signalbox accounts journal ID           journal lines with their ids and what was left after them
      [--month 2026-11] [--from TIME] [--until TIME] [--oldest-first] [--limit 100] [--cursor CURSOR] [--csv]
  signalbox accounts ledger ID            credits and charges, newest first
      [--limit 20]

  signalbox holds list                    money held for calls in progress, oldest first
      [--account ID] [--limit 100] [--cursor CURSOR]
  signalbox holds settle HOLD AMOUNT      charge a hold by hand
      [--reason TEXT]
  signalbox holds void HOLD               give a hold back without a charge

  signalbox keys create --account ID      make a key; it is shown this once
      [--label TEXT] [--endpoints chat,embeddings] [--models ID,ID] [--expires 30d]
      [--rpm N] [--tpm N] [--concurrency N] [--cap 50/month|5/day]
  signalbox keys list [--account ID]      keys by id, without the keys themselves
  signalbox keys revoke KEY_ID            end a key; gateways refuse it within 5 seconds
  signalbox keys rotate KEY_ID            make a key like it; the old one ends after the overlap
      [--overlap 1d]

  signalbox usage                         what was used and charged, by UTC day and model
      [--from 2026-11-01] [--to 2026-12-01] [--by day,model] [--account ID] [--key ID]
      [--model ID] [--endpoint ID] [--vendor ID] [--limit 10000]
  signalbox usage records                 single calls, newest first
      [--account ID] [--from DATE] [--to DATE] [--limit 20] [--cursor NEXT]
  signalbox usage verify                  compare records, sums and journal
      [--from DATE] [--to DATE]
  signalbox usage rebuild                 make sums again from their records
      [--from DATE] [--to DATE]

  signalbox webhooks list ACCOUNT TASK    messages about a task, and how their attempts went
  signalbox webhooks resend ACCOUNT MSG   send a message again
  signalbox webhooks rotate-secret ACCOUNT
      [--overlap 24h]                     give an account a new secret; older ones sign beside it meanwhile

  signalbox --help | --version

  --sandbox       offline stand-ins answer for every vendor that has no key
  --store STORE   for accounts, holds, keys, usage and webhooks: the store to use instead of SIGNALBOX_STORE
  --json          for accounts, holds, keys, usage and webhooks: one line of JSON instead of text

environment of serve, accounts, holds, keys, usage and webhooks
  SIGNALBOX_STORE       memory:, sqlite:PATH or postgres://user:password@host/database
                        (sqlite:signalbox.db; with --sandbox memory:, which keeps nothing)
  SIGNALBOX_MODELS      paths of JSON lists of models to add or override, separated by commas

environment of serve
  HOST, PORT            address to listen on (127.0.0.1, 8787)
  SIGNALBOX_API_KEYS    keys to accept, separated by commas; each is its own account
                        (those of the store; one is made when there is none)
  SIGNALBOX_CREDIT      dollars credited once to each of them
  SIGNALBOX_PRICES      path of a price file; billing is off when unset; SIGHUP reads it again
  SIGNALBOX_LIST_PRICES charges the vendors' list prices times this: 1, 1.2; rows of the price file go first
  SIGNALBOX_LIMITS      rpm=600,tpm=1000000,concurrency=50 (per key)
  REDIS_URL             redis://… to share the limits among several gateways
  SIGNALBOX_TIER        paid or free
  SIGNALBOX_TIMEOUTS    connect=5s,first_byte=120s,idle=60s,total=600s
  SIGNALBOX_HOLD_TTL    15m
  SIGNALBOX_TASK_DEADLINE       24h; videos that take longer are given up
  SIGNALBOX_TASK_POLL_INTERVAL  how often a vendor is asked about a video (as it recommends)
  SIGNALBOX_TASK_RETENTION      90d; how long videos are listed after their end, at least 1d, or forever
  SIGNALBOX_OPERATOR_KEY        at least 24 characters; opens GET /healthz?verbose
  SIGNALBOX_EXPECTED_INSTANCES  how many gateways share REDIS_URL (1); each keeps its part while Redis is down
  SIGNALBOX_WEBHOOK_SECRET      whsec_… to sign webhooks of accounts without a secret of their own
  SIGNALBOX_ALLOW_PRIVATE_URLS  1 to let callers' URLs point to private addresses (on one machine only)
  OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, DASHSCOPE_API_KEY, VOYAGE_API_KEY
                        one key, or several separated by commas, which take turns
  OPENAI_BASE_URL, …    origin of a vendor, such as http://127.0.0.1:9100
  HTTPS_PROXY, NO_PROXY proxy for vendors with https, and hosts that are called without it
  AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY, [AZURE_OPENAI_API_VERSION]
                        Azure OpenAI: the vendor azure-openai of models in SIGNALBOX_MODELS
  ANTHROPIC_FOUNDRY_BASE_URL, ANTHROPIC_FOUNDRY_API_KEY
                        Claude in Foundry: the vendor anthropic-foundry

servers of OpenAI's dialect, for models of SIGNALBOX_MODELS that name one as their vendor
${presetLines()}

packages to install when a store asks for them: pg (postgres://…), ioredis (REDIS_URL),
@photostructure/sqlite (sqlite:PATH on a Node whose own SQLite is missing or too old)
`

/** The presets with their variables, one line each. */
function presetLines(): string {
  return Object.values<Preset>(presets)
    .map((preset) => {
      const { keys, baseURL, account } = presetVariables(preset)
      const needed = preset.needsKey ? [...keys, ...(account === undefined ? [] : [account])] : []
      const optional = preset.needsKey ? [baseURL] : [baseURL, ...keys]
      return `  ${preset.id.padEnd(22)}${[...needed, ...optional.map((name) => `[${name}]`)].join(', ')}`
    })
    .join('\n')
}

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  return manifest.version
}

// A reader such as `head` may close the pipe early, which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function main(words: readonly string[], terminal: Terminal): Promise<void> {
  const [command, ...rest] = words
  if (words.includes('--version') || words.includes('-v')) return print(version())
  if (command === undefined || command === 'help' || words.includes('--help') || words.includes('-h'))
    return print(HELP.trimEnd())
  switch (command) {
    case 'serve':
      return serveCommand(rest, terminal)
    case 'accounts':
      return accountsCommand(rest, terminal)
    case 'holds':
      return holdsCommand(rest, terminal)
    case 'keys':
      return keysCommand(rest, terminal)
    case 'usage':
      return usageCommand(rest, terminal)
    case 'webhooks':
      return webhooksCommand(rest, terminal)
    case 'models':
      return modelsCommand(rest, terminal)
    case 'catalog':
      return catalogCommand(rest, terminal)
    default:
      throw new SettingError(`there is no command ${JSON.stringify(command)}; see signalbox --help`)
  }
}

/**
 * `signalbox serve [--sandbox]`: returns once the server listens. SIGTERM or SIGINT end the process after the requests in
 * progress, a second one at once. SIGHUP reads the price file again.
 * @throws SettingError for a setting that cannot be used.
 */
async function serveCommand(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, { options: [], flags: ['sandbox'], positionals: [] })
  const starting = serve({ ...terminal, useStandIns: given.flag('sandbox'), version: version() })
  // First, because a signal may arrive as soon as the server has printed that it listens.
  stopOnSignal(async () => (await starting).close())
  reloadOnSignal(terminal, starting)
  await starting
}

/** Without a price file SIGHUP ends the process, as usual. */
function reloadOnSignal({ environment }: Terminal, starting: Promise<RunningServer>): void {
  const path = environment['SIGNALBOX_PRICES']?.trim()
  if (path === undefined || path === '') return
  process.on('SIGHUP', () => {
    starting.then(
      (running) => reload(running),
      // The start failed, and `main` reports the error.
      () => undefined,
    )
  })
}

function reload({ reloadPrices }: RunningServer): void {
  try {
    reloadPrices?.()
    consoleLogger.info('the prices were read again')
  } catch (error) {
    consoleLogger.error('the prices were not replaced; the last good ones stay', {
      fault: error instanceof Error ? error.message : String(error),
    })
  }
}

function stopOnSignal(close: () => Promise<void>): void {
  let isStopping = false
  const stop = (): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        consoleLogger.error('not everything could be closed', { error })
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

function fail(error: unknown): never {
  const isKnown = error instanceof SettingError || (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
  process.stderr.write(`signalbox: ${isKnown ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`)
  process.exit(1)
}

main(process.argv.slice(2), { environment: process.env, print }).catch(fail)
