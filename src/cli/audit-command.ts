import { auditEntryObject } from '../admin/objects/audit.ts'
import type { CommandArguments, GroupDefinition } from './command.ts'
import { STORE_OPTIONS, withStore } from './open-store.ts'
import { parseCount, SettingError } from './setting-values.ts'
import { printNext, printRows, type Terminal } from './terminal.ts'

const DEFAULT_ENTRIES = '100'

/** Commands `signalbox audit …`. The action throws a SettingError naming the argument. */
export const auditCommand: GroupDefinition = {
  summary: 'show changes by operators',
  actions: {
    list: {
      summary: 'list changes of the last 365 days, newest first',
      options: {
        subject: { value: 'ID', text: 'only changes of this account, key or hold' },
        from: { value: 'TIME', text: 'first time, in ISO 8601' },
        to: { value: 'TIME', text: 'time before which the changes were made, in ISO 8601' },
        limit: { value: 'N', text: `maximum number of changes (default: ${DEFAULT_ENTRIES})` },
        cursor: { value: 'CURSOR', text: 'continue after the previous page' },
        ...STORE_OPTIONS,
      },
      run: listChanges,
    },
  },
}

async function listChanges(given: CommandArguments, terminal: Terminal): Promise<void> {
  const options = {
    subject: given.option('subject'),
    fromMs: timeOption('--from', given.option('from')),
    untilMs: timeOption('--to', given.option('to')),
    cursor: given.option('cursor'),
    limit: parseCount('--limit', given.option('limit') ?? DEFAULT_ENTRIES),
  }
  const page = await withStore(terminal, { store: given.option('store') }, ({ audit }) => audit.list(options))
  if (given.flag('json')) {
    const data = page.entries.map(auditEntryObject)
    terminal.print(JSON.stringify({ object: 'list', data, next: page.next ?? null }))
    return
  }
  const rows = page.entries.map(({ createdAtMs, operator, address, action, subject, before, after, input }) => {
    const change = before === undefined && after === undefined ? input : { before, after }
    const time = new Date(createdAtMs).toISOString()
    return [time, operator, address ?? 'command line', action, subject ?? '', JSON.stringify(change)]
  })
  printRows(terminal, [['time', 'operator', 'address', 'action', 'subject', 'change'], ...rows])
  printNext(terminal, page.next)
}

function timeOption(name: string, text: string | undefined): number | undefined {
  const timeMs = text === undefined ? undefined : Date.parse(text)
  if (Number.isNaN(timeMs)) throw new SettingError(`${name}: must be a time in ISO 8601, such as 2026-11-01`)
  return timeMs
}
