import { hintAt } from '../core/known-members.ts'
import { parseDollars } from '../core/money.ts'
import type { AccountUpdate } from '../gateway/accounts.ts'
import type { NewAccount } from '../stores/ledger.ts'
import type { BillingMode } from '../stores/principal.ts'
import type { CommandArguments, OptionDefinition } from './command.ts'
import { configuredPlans } from './serve-settings.ts'
import {
  checkDollars,
  parseBillingMode,
  parseCap,
  parseGiven,
  parseLabel,
  parseTier,
  SettingError,
} from './setting-values.ts'
import type { Terminal } from './terminal.ts'

/** Options that say what an account has, of `accounts create` and `accounts update`. */
export const ACCOUNT_OPTIONS = {
  name: { value: 'TEXT', text: 'a name for people' },
  tier: { value: 'paid|free', text: 'which models and limits it has (paid)' },
  plan: { value: 'NAME', text: 'its plan, of those that the gateway has' },
  billing: { value: 'prepaid|metered', text: 'when it pays (as the gateway says)' },
  'credit-limit': { value: 'DOLLARS', text: 'how much a metered account may owe' },
  cap: { value: '50/month|5/day', text: 'most dollars in a month or a day' },
} as const satisfies Readonly<Record<string, OptionDefinition>>

type Given = Pick<CommandArguments, 'option'>

/** The settings of a new account. */
export type NewAccountSettings = Pick<NewAccount, 'name' | 'tier' | 'plan' | 'billing' | 'creditLimit' | 'spendingCap'>

/**
 * Reads the settings of a new account; what was not given is absent.
 * @throws SettingError naming the option.
 */
export function newAccountSettings(given: Given, terminal: Terminal): NewAccountSettings {
  return {
    name: parseGiven(given.option('name'), (text) => parseLabel('--name', text)),
    tier: parseGiven(given.option('tier'), (text) => parseTier('--tier', text)),
    plan: parseGiven(given.option('plan'), (text) => readPlan(text, terminal)),
    billing: parseGiven(given.option('billing'), readBilling),
    creditLimit: parseGiven(given.option('credit-limit'), readCreditLimit),
    spendingCap: parseGiven(given.option('cap'), (text) => parseCap('--cap', text)),
  }
}

/** Takes a value away, so that the gateway's own counts again. */
const NONE = 'none'

/**
 * Reads what is to be changed about an account; `none` takes a value away, and what was not given stays.
 * @throws SettingError naming the option.
 */
export function changedAccountSettings(given: Given, terminal: Terminal): AccountUpdate {
  const orNone = <Value>(
    option: keyof typeof ACCOUNT_OPTIONS,
    read: (text: string) => Value,
  ): Value | null | undefined => parseGiven(given.option(option), (text) => (text === NONE ? null : read(text)))
  return {
    name: orNone('name', (text) => parseLabel('--name', text)),
    tier: parseGiven(given.option('tier'), (text) => parseTier('--tier', text)),
    plan: orNone('plan', (text) => readPlan(text, terminal)),
    billing: orNone('billing', readBilling),
    creditLimit: orNone('credit-limit', readCreditLimit),
    spendingCap: orNone('cap', (text) => parseCap('--cap', text)),
  }
}

/** Without plans in the configuration every name is taken: a gateway in code has plans that the command cannot know. */
function readPlan(text: string, terminal: Terminal): string {
  const known = plansOf(terminal)
  if (known.length === 0 || known.includes(text)) return parseLabel('--plan', text)
  const fault = `there is no plan ${JSON.stringify(text)} in the configuration`
  throw new SettingError(`--plan: ${fault}; ${hintAt(text, known)}`)
}

/** Says that the name of a plan could not be checked. */
export function printUncheckedPlan(plan: string | null | undefined, terminal: Terminal, asJson: boolean): void {
  if (plan == null || asJson || plansOf(terminal).length > 0) return
  terminal.print(
    `The name of the plan was not checked: no plans are configured here. Calls are 503 where the gateway lacks it.`,
  )
}

function plansOf({ environment, documents }: Terminal): string[] {
  return Object.keys(configuredPlans(environment['SIGNALBOX_PLANS'], documents))
}

function readBilling(text: string): BillingMode {
  return parseBillingMode('--billing', text)
}

function readCreditLimit(text: string): bigint {
  return parseDollars(checkDollars('--credit-limit', text))
}
