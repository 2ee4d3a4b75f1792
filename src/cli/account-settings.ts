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

/** Options of `accounts create` and `accounts update` for the properties of an account. */
export const ACCOUNT_OPTIONS = {
  name: { value: 'TEXT', text: 'display name' },
  tier: { value: 'paid|free', text: 'models and limits of the account (default: paid)' },
  plan: { value: 'NAME', text: 'name of a plan of the gateway' },
  billing: { value: 'prepaid|metered', text: 'billing mode (default: that of the gateway)' },
  'credit-limit': { value: 'DOLLARS', text: 'maximum that a metered account may owe' },
  cap: { value: '50/month|5/day', text: 'maximum spending in dollars per month or day' },
} as const satisfies Readonly<Record<string, OptionDefinition>>

type Given = Pick<CommandArguments, 'option'>

/** Settings of a new account. */
export type NewAccountSettings = Pick<NewAccount, 'name' | 'tier' | 'plan' | 'billing' | 'creditLimit' | 'spendingCap'>

/**
 * Reads the settings of a new account; options that are not set are omitted.
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

/** Option value that removes a setting, so that the gateway's default applies again. */
const NONE = 'none'

/**
 * Reads the changes to an account; `none` removes a value, and options that are not set change nothing.
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

/** Accepts every name if no plans are configured: a gateway in code has plans that the command cannot know. */
function readPlan(text: string, terminal: Terminal): string {
  const known = plansOf(terminal)
  if (known.length === 0 || known.includes(text)) return parseLabel('--plan', text)
  const fault = `there is no plan ${JSON.stringify(text)} in the configuration`
  throw new SettingError(`--plan: ${fault}; ${hintAt(text, known)}`)
}

/** Warns that the name of a plan could not be checked. */
export function printUncheckedPlan(plan: string | null | undefined, terminal: Terminal, asJson: boolean): void {
  if (plan == null || asJson || plansOf(terminal).length > 0) return
  terminal.print(
    `The name of the plan was not checked: no plans are configured here. Calls get 503 if the gateway does not have it.`,
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
