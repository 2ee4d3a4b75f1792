import { userInfo } from 'node:os'
import * as z from 'zod'
import {
  type AdminAnswer,
  type AdminCall,
  type Administration,
  type AdminRoute,
  OPERATOR_SCOPES,
  type Operator,
} from '../admin/admin-route.ts'
import { isReported, recordChange, runRoute, stateOf, targetOf } from '../admin/change.ts'
import { dollars } from '../admin/objects/fields.ts'
import { STORE_ROUTES } from '../admin/routes/admin-routes.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { accountStorageOf, accountsOf } from '../gateway/accounts.ts'
import { auditOf } from '../gateway/audit.ts'
import { holdsOf } from '../gateway/holds.ts'
import { keysOf } from '../gateway/keys.ts'
import { usageOf } from '../gateway/usage.ts'
import { webhooksOf } from '../gateway/webhooks.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { Retention } from '../stores/retention.ts'
import { SqliteStoreError } from '../stores/sqlite/sqlite-store.ts'
import { StoredBounds } from '../stores/stored-bounds.ts'
import type { ActionDefinition, CommandArguments, GroupDefinition, PositionalDefinition } from './command.ts'
import { durableStore, openStore, STORE_OPTIONS, storeError } from './open-store.ts'
import { checkSignedDollars, SettingError } from './setting-values.ts'
import { settingValues } from './settings.ts'
import { oneLine, printRows, type Terminal } from './terminal.ts'

/** How the command line shows and reads a parameter of a route, or a member of its body. */
export interface MemberOption {
  /** Name of the option. Defaults to the member's name with hyphens. */
  readonly flag?: string
  /** Placeholder of its value in the help, such as `TEXT`. */
  readonly value?: string
  /** One line for the help. */
  readonly text: string
  /** Value of a flag that was set. If omitted, the option has a value. */
  readonly whenSet?: unknown
  /**
   * Reads a value as the route expects it. If omitted, the text itself.
   * @throws SettingError naming the option.
   */
  readonly read?: (name: string, text: string) => unknown
}

/** Positional argument, such as `ACCOUNT`. */
export interface MemberPosition extends Pick<MemberOption, 'read'>, PositionalDefinition {}

/** Values of a command by their names in the API. */
export type MemberValues = Readonly<Record<string, unknown>>

/** Action that runs a route of the admin API in this process. The members of the route are its options. */
export interface AdminAction {
  /** Id of the route. */
  readonly route: string
  /** One line for the help. Defaults to the summary of the route. */
  readonly summary?: string
  /** Members that are positional arguments, in their order. */
  readonly positionals?: Readonly<Record<string, MemberPosition>>
  /** Members with another meaning than in other commands. */
  readonly members?: Readonly<Record<string, MemberOption>>
  /** Returns values of members that were not given. */
  readonly defaults?: (given: MemberValues) => MemberValues
  /** Route that answers with a file, for the flag `--csv`. */
  readonly csv?: string
  /** Second route of the same path, and the member of the answer that contains its answer. */
  readonly also?: { readonly route: string; readonly member: string }
  /** Command that lists the ids, for the error about an unknown one. */
  readonly hint?: string
  /** Whether the action runs when the command has no action. */
  readonly isDefault?: boolean
  /**
   * Checks the body by the configuration, and returns it with the changes.
   * @throws SettingError, or GatewayError `invalid_request` naming a member.
   */
  readonly prepare?: (body: MemberValues, terminal: Terminal) => MemberValues
  /** @throws SettingError for an answer that counts as a failure. */
  check?(answer: object, terminal: Terminal): void
  /** Columns of a list by their titles: the member of a row, or the text of a cell. */
  readonly columns?: Readonly<Record<string, string | ((row: never) => string)>>
  /** Text for an empty list. If omitted, the titles of its columns are printed. */
  readonly empty?: string
  /** Prints an answer as text. Required without columns. */
  print?(answer: object, terminal: Terminal, values: MemberValues): void
}

/** Page of a list. */
export interface List<Row = object> {
  readonly data: readonly Row[]
  readonly next?: string | null
}

type StoreRoute = AdminRoute<Administration>
type Place = 'params' | 'query' | 'body'
type Values = Readonly<Record<Place, MemberValues>>

/** Member of a route as one option. */
interface Member {
  readonly place: Place
  readonly name: string
  /** Name within the object `name`, if the option sets only this part of it. */
  readonly inner: string | undefined
  readonly flag: string
  readonly option: MemberOption
  readonly isRequired: boolean
  /** Whether `none` removes the value. */
  readonly isRemovable: boolean
}

type MemberOptions = Readonly<Record<string, MemberOption>>

/** Creates a command from its actions. `shared` describes the members that several actions have. */
export function adminCommand(
  name: string,
  summary: string,
  actions: Readonly<Record<string, AdminAction>>,
  shared: MemberOptions,
): GroupDefinition {
  const definitions = Object.entries(actions).map(([word, action]) => {
    const options = { ...shared, ...action.members, ...action.positionals }
    return [word, actionOf(`${name} ${word}`, action, options)] as const
  })
  return { summary, actions: Object.fromEntries(definitions) }
}

function actionOf(name: string, action: AdminAction, memberOptions: MemberOptions): ActionDefinition {
  const { positionals = {}, isDefault = false } = action
  const route = routeOf(action.route)
  const members = membersOf(route, memberOptions)
  const options = members.filter(({ name }) => !Object.hasOwn(positionals, name))
  return {
    summary: action.summary ?? `${route.summary.charAt(0).toLowerCase()}${route.summary.slice(1)}`,
    positionals: Object.values(positionals),
    options: {
      ...Object.fromEntries(
        options.map(({ flag, option, isRequired }) => [
          flag,
          isRequired && action.defaults === undefined ? { ...option, text: `${option.text}; required` } : option,
        ]),
      ),
      ...(action.csv === undefined ? {} : { csv: { text: 'all lines as CSV' } }),
      ...STORE_OPTIONS,
    },
    allowNegative: Object.values(positionals).some(({ read }) => read === checkSignedDollars),
    isDefault,
    async run(given, terminal) {
      const csv = action.csv !== undefined && given.flag('csv') ? routeOf(action.csv) : undefined
      if (csv !== undefined) refuseWithoutEffect(given, options, membersOf(csv, memberOptions))
      const values = valuesOf(given, action, members)
      if (route.method === 'PATCH' && Object.keys(values.body).length === 0)
        throw new SettingError(`${name}: say what to change: ${options.map(({ flag }) => `--${flag}`).join(', ')}`)
      try {
        await runAction(action, csv ?? route, values, given, terminal)
      } catch (error) {
        // Rejected input is for the operator to correct; other errors are bugs and keep their stack.
        if (!GatewayError.isInstance(error) || error.status >= 500) throw error
        const hint = error.status === 404 && action.hint !== undefined ? `; see ${action.hint}` : ''
        throw new SettingError(`${withOptionNames(error, options)}${hint}`)
      }
    },
  }
}

function routeOf(id: string): StoreRoute {
  const route = STORE_ROUTES.find((one) => one.id === id)
  if (route === undefined) throw new TypeError(`there is no route ${id} that works on a store`)
  return route
}

/** Returns the members of a route that have an option. An object without its own option is replaced by its members. */
function membersOf(route: StoreRoute, options: MemberOptions): readonly Member[] {
  const isChange = route.method === 'PATCH'
  const ofShape = (place: Place, shape: Readonly<Record<string, z.ZodType>>, outer?: string): Member[] =>
    Object.entries(shape).flatMap(([name, schema]) => {
      const option = options[name]
      const bare = withoutWrappers(schema)
      if (option === undefined) return bare instanceof z.ZodObject ? ofShape(place, bare.shape, name) : []
      return {
        place,
        name: outer ?? name,
        inner: outer === undefined ? undefined : name,
        flag: option.flag ?? name.replaceAll('_', '-'),
        option:
          bare instanceof z.ZodEnum && option.whenSet === undefined ? { ...choiceOf(bare.options), ...option } : option,
        isRequired: outer === undefined && !schema.isOptional(),
        isRemovable: isChange && schema.isNullable(),
      }
    })
  const params = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()])
  const [query, body] = [route.query, route.body].map((schema) => (schema instanceof z.ZodObject ? schema.shape : {}))
  return [
    ...ofShape('params', Object.fromEntries(params)),
    ...ofShape('query', query ?? {}),
    ...ofShape('body', body ?? {}),
  ]
}

function withoutWrappers(schema: z.ZodType): z.ZodType {
  const isWrapper = schema instanceof z.ZodOptional || schema instanceof z.ZodNullable
  return isWrapper ? withoutWrappers(schema.unwrap() as z.ZodType) : schema
}

function choiceOf(choices: readonly (string | number)[]): Pick<MemberOption, 'value' | 'read'> {
  const read = (name: string, text: string): string => {
    if (!choices.includes(text)) throw new SettingError(`${name}: must be ${choices.join(' or ')}`)
    return text
  }
  return { value: choices.join('|'), read }
}

/** @throws SettingError for an option that has no effect on a file. */
function refuseWithoutEffect(given: CommandArguments, options: readonly Member[], ofFile: readonly Member[]): void {
  const ignored = options.filter(({ flag }) => !ofFile.some((one) => one.flag === flag))
  const flag = ignored.find((member) => textOf(given, member) !== undefined)?.flag ?? (given.flag('json') ? 'json' : '')
  if (flag !== '') throw new SettingError(`--${flag}: has no effect with --csv; give one of them`)
}

/** Returns the text of an option; empty for a flag that was set. */
function textOf(given: CommandArguments, { flag, option }: Member): string | undefined {
  if (option.whenSet === undefined) return given.option(flag)
  return given.flag(flag) ? '' : undefined
}

/** @throws SettingError for a value that cannot be read, or a required one that is missing. */
function valuesOf(given: CommandArguments, action: AdminAction, members: readonly Member[]): Values {
  const values: Record<Place, Record<string, unknown>> = { params: {}, query: {}, body: {} }
  const positions = Object.entries(action.positionals ?? {})
  for (const member of members) {
    const { name, inner } = member
    const position = positions.findIndex(([positional]) => positional === name)
    const value = position === -1 ? optionValue(given, member) : positionValue(given, position, positions[position]![1])
    if (value === undefined) continue
    const place = values[member.place]
    place[name] = inner === undefined ? value : { ...(place[name] as object | undefined), [inner]: value }
  }
  const defaults = action.defaults?.({ ...values.params, ...values.query, ...values.body }) ?? {}
  for (const { place, name, flag, isRequired } of members) {
    const value = values[place][name] ?? defaults[name]
    if (isRequired && (value === undefined || value === ''))
      throw new SettingError(`--${flag} is missing; see signalbox --help`)
    if (value !== undefined) values[place][name] ??= value
  }
  return values
}

function optionValue(given: CommandArguments, member: Member): unknown {
  const { option, flag, isRemovable } = member
  const text = textOf(given, member)
  if (text === undefined) return undefined
  if (isRemovable && text === 'none') return null
  return option.whenSet ?? (option.read === undefined ? text : option.read(`--${flag}`, text))
}

function positionValue({ positionals }: CommandArguments, index: number, { text, read }: MemberPosition): unknown {
  const word = positionals[index] ?? ''
  return read === undefined ? word : read(text, word)
}

/** Returns the message of an error with the names of options in place of those of the API. */
function withOptionNames({ message, param }: GatewayError, options: readonly Member[]): string {
  let text = message
  const named = options.find(({ name, inner }) => inner === undefined && name === param)
  if (named !== undefined && param !== undefined) {
    const rest = message.startsWith(param) ? message.slice(param.length) : `: ${message}`
    text = `--${named.flag}${rest}`.replace(/\bfrom$/, '--from')
  }
  for (const { name, inner = name, flag } of options) if (inner.includes('_')) text = text.replaceAll(inner, flag)
  return text
}

async function runAction(
  action: AdminAction,
  route: StoreRoute,
  values: Values,
  given: CommandArguments,
  terminal: Terminal,
): Promise<void> {
  const body = action.prepare === undefined ? values.body : action.prepare(values.body, terminal)
  const { webhookSecret } = route.secret === 'secret' ? settingValues(terminal.environment, ['webhookSecret']) : {}
  const wanted = { store: given.option('store'), webhookSecret, mayCreate: action.route === 'create_account' }
  await withStore(terminal, wanted, async (gateway) => {
    const call = {
      gateway,
      operator: currentOperator(),
      clock: systemClock,
      isReadOnly: false,
      idempotencyKey: undefined,
      params: values.params as Readonly<Record<string, string>>,
      query: new URLSearchParams(values.query as Readonly<Record<string, string>>),
      body,
    }
    const answer = await answerOf(route, call, terminal)
    if ('csv' in answer) {
      // `print` adds the line end.
      for await (const piece of answer.csv.lines) terminal.print(piece.replace(/\r\n$/, '\r'))
      return
    }
    const { also } = action
    const added = also && { [also.member]: jsonOf(await runRoute(routeOf(also.route), call)) }
    const whole: object = { ...jsonOf(answer), ...added }
    action.check?.(whole, terminal)
    if (given.flag('json')) terminal.print(JSON.stringify(whole))
    else if (action.columns !== undefined) printList(action, whole as List, amountsOf(route), terminal)
    else action.print?.(whole, terminal, { ...values.params, ...values.query, ...values.body })
  })
}

/** Returns the members of a list's rows that are amounts. */
function amountsOf({ answer }: StoreRoute): ReadonlySet<string> {
  const data = answer instanceof z.ZodObject ? answer.shape['data'] : undefined
  const row = data instanceof z.ZodArray ? data.element : undefined
  const shape: Readonly<Record<string, z.ZodType>> = row instanceof z.ZodObject ? row.shape : {}
  return new Set(Object.keys(shape).filter((name) => withoutWrappers(shape[name]!) === dollars))
}

function printList(
  { columns = {}, empty }: AdminAction,
  { data, next }: List,
  amounts: ReadonlySet<string>,
  terminal: Terminal,
): void {
  if (data.length === 0 && empty !== undefined) {
    terminal.print(empty)
    return
  }
  const cellsOf = (row: object): string[] =>
    Object.values(columns).map((column) => {
      if (typeof column === 'function') return (column as (row: object) => string)(row)
      const value = (row as MemberValues)[column] ?? '-'
      if (amounts.has(column) && value !== '-') return dollarsOf(String(value))
      return column.endsWith('_at_ms') && typeof value === 'number' ? timeOf(value) : String(value)
    })
  printRows(terminal, [Object.keys(columns), ...data.map(cellsOf)])
  if (next != null) terminal.print(`more: --cursor ${next}`)
}

/** Formats decimal dollars: `$1.5`, `-$0.003`. */
export function dollarsOf(amount: string): string {
  return amount.replace(/^-?/, '$&$$')
}

/** Formats Unix milliseconds in ISO 8601. */
export function timeOf(timeMs: number): string {
  return new Date(timeMs).toISOString()
}

function jsonOf(answer: AdminAnswer): object {
  return 'json' in answer ? answer.json : {}
}

/** Some containers have no entry for their user. */
function currentOperator(): Operator {
  try {
    return { name: userInfo().username, can: OPERATOR_SCOPES }
  } catch {
    return { name: `uid ${process.getuid?.() ?? 'unknown'}`, can: OPERATOR_SCOPES }
  }
}

/**
 * Runs a route, and adds its change to the audit. If the entry cannot be written, the change stays and its answer is returned. The
 * terminal gets a warning that names the change, and the process exits with status 1.
 * @throws SettingError if an account to create exists.
 */
async function answerOf(route: StoreRoute, call: AdminCall<Administration>, terminal: Terminal): Promise<AdminAnswer> {
  if (!isReported(route)) return await runRoute(route, call)
  const change = { route, call, before: route.method === 'GET' ? undefined : await stateOf({ route, call }) }
  const id = targetOf(route, call)
  if (route.creates !== undefined && change.before !== undefined)
    throw new SettingError(`--id: the ${route.creates} ${JSON.stringify(id)} exists already; nothing was changed`)
  const answer = await runRoute(route, call)
  try {
    await recordChange({ ...change, answer }, { source: 'command_line' })
  } catch (cause) {
    // Without the answer, the operator would repeat the change.
    const name = id === undefined ? route.id : `${route.id} of ${id}`
    const text = `the change ${name} was made, but could not be added to the audit: ${reasonOf(cause)}`
    terminal.warn?.(oneLine(text))
    terminal.fail?.()
  }
  return answer
}

/** An error of the gateway has the driver's error as its cause. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as Error
  return cause instanceof Error ? cause.message : String(cause)
}

/**
 * Runs a command on the store of `--store`, else of `SIGNALBOX_STORE`, else on `sqlite:signalbox.db`, and closes it.
 * @param wanted `mayCreate` allows the command to create the SQLite database. `webhookSecret` signs webhooks of accounts without their own.
 * @throws SettingError for a store that keeps nothing or cannot be used.
 */
async function withStore(
  terminal: Terminal,
  wanted: {
    readonly store: string | undefined
    readonly mayCreate: boolean
    readonly webhookSecret: string | undefined
  },
  run: (administration: Administration) => Promise<void>,
): Promise<void> {
  const { name, setting } = durableStore(wanted.store, terminal.environment, wanted.mayCreate)
  const { store, release } = await openStore(name, setting, settingValues(terminal.environment, ['migrate']).migrate)
  try {
    try {
      await store.start()
    } catch (cause) {
      throw storeError(name, setting, cause)
    }
    await run(administrationOf(store, terminal, wanted.webhookSecret))
  } catch (error) {
    const fault = GatewayError.isInstance(error) && error.code === 'store_unavailable' ? error.cause : error
    if (fault instanceof SqliteStoreError) throw storeError(name, setting, fault)
    throw fault
  } finally {
    await store.close()
    await release()
  }
}

function administrationOf(store: GatewayStore, terminal: Terminal, webhookSecret: string | undefined): Administration {
  const ready = async (): Promise<void> => undefined
  const storedBounds = new StoredBounds(store, systemClock, accountStorageOf(undefined))
  // A command only reads the retention: that of its own file may be an older one.
  const retention = new Retention(store.settings, terminal.usageRetention ?? {}, (line) => terminal.warn?.(line))
  return {
    accounts: accountsOf(store, systemClock, timeOrderedIds, ready),
    keys: keysOf(store, systemClock, timeOrderedIds, ready),
    holds: holdsOf(store, systemClock, ready),
    webhooks: webhooksOf(store, systemClock, ready, { webhookSecret, storedBounds }),
    usage: usageOf({ store: store.usage, clock: systemClock, retention }, ready),
    audit: auditOf(store, systemClock, timeOrderedIds, ready),
  }
}
