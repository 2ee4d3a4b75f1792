import type { AuditEntry, List } from '../answers.ts'
import { queryOf } from '../api.ts'
import { time } from '../format.ts'
import { hrefOf, type Place } from '../location.ts'
import { Badge, Disclosure, Empty, Field, Form, Loaded, Table } from '../parts.tsx'
import { useData } from '../use-data.ts'

/** Changes by operators, newest first; the subject and the page are in the URL. */
export function Audit({ place }: { place: Place }) {
  const subject = place.query.get('subject') ?? undefined
  const after = place.query.get('after') ?? undefined
  const page = useData<List<AuditEntry>>(`audit${queryOf({ subject, after, limit: 50 })}`)
  return (
    <>
      <Form
        name="Filters"
        button="Show"
        onSubmit={(values) => {
          location.hash = hrefOf(['audit'], values)
        }}
      >
        <Field key={subject} name="subject" label="Subject" hint="id of an account, key or hold" value={subject} />
      </Form>
      <Loaded of={page}>
        {({ data, next }) => (
          <>
            {data.length > 0 ? (
              <AuditTable entries={data} />
            ) : (
              <Empty>
                {subject === undefined ? 'No changes in the last 365 days.' : 'No change of this subject here. '}
                {subject === undefined ? null : <a href={hrefOf(['audit'])}>Show all</a>}
              </Empty>
            )}
            <p class="pager">
              {after === undefined ? null : <a href={hrefOf(['audit'], { subject })}>Newest</a>}{' '}
              {next === null ? null : <a href={hrefOf(['audit'], { subject, after: next })}>Older</a>}
            </p>
          </>
        )}
      </Loaded>
    </>
  )
}

function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <Table name="Changes" head={['time', 'operator', 'address', 'action', 'subject', 'change']}>
      {entries.map((entry) => (
        <tr key={entry.id}>
          <td>{time(entry.created_at_ms)}</td>
          <td>{entry.operator}</td>
          <td>{entry.address ?? 'command line'}</td>
          <td>
            {entry.action} {entry.code === null ? null : <Badge kind="bad">{entry.code}</Badge>}
          </td>
          <td>
            {entry.subject === null ? '–' : <a href={hrefOf(['audit'], { subject: entry.subject })}>{entry.subject}</a>}
          </td>
          <td>
            <Disclosure summary="Details">
              <pre>{JSON.stringify({ input: entry.input, before: entry.before, after: entry.after }, null, 2)}</pre>
            </Disclosure>
          </td>
        </tr>
      ))}
    </Table>
  )
}
