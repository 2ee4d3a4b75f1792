import type { OperatorScope } from '../../admin/operators.ts'
import type { Session } from './answers.ts'

/** Whether the operator may do this here. Forbidden actions are not shown; the API rejects them in any case. */
export function may(session: Session, scope: OperatorScope): boolean {
  return session.can.includes(scope) && (scope === 'read' || !session.read_only)
}
