import type { OperatorScope } from '../../admin/operators.ts'
import type { Session } from './answers.ts'

/** May the operator do this here? What he may not is not drawn; the API refuses it in any case. */
export function may(session: Session, scope: OperatorScope): boolean {
  return session.can.includes(scope) && (scope === 'read' || !session.read_only)
}
