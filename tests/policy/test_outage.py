from extensions.policy.outage import OutageDetector


def failed(detector, *domains, now=1.0):
    for domain in domains:
        detector.failed(domain, now)


def answered(detector, *domains):
    for domain in domains:
        detector.answered(domain, f"http://{domain}/")


def test_all_hosts_at_once_is_our_own_network():
    """Hosts that answered fail together with no answer between: out, until any answer."""
    detector = OutageDetector()
    answered(detector, "a", "b", "c")
    failed(detector, "a", "a", "a")
    assert not detector.out(1.0)
    failed(detector, "b")
    assert detector.out(1.0)
    assert detector.out_since == 1.0
    answered(detector, "c")
    assert not detector.out(2.0)


def test_dead_names_are_no_witnesses():
    """Hosts that never answered prove nothing, however many of them fail."""
    detector = OutageDetector()
    answered(detector, "a")
    failed(detector, *[f"dead{i}.invalid" for i in range(50)])
    assert not detector.out(1.0)


def test_it_is_said_when_a_probe_had_its_time():
    """What a witness denies at once is never said."""
    detector = OutageDetector()
    answered(detector, "a", "b")
    failed(detector, "a", "b")
    detector.probed(1.25)
    assert detector.out(1.5)
    assert not detector.sure(1.5)
    detector.probed(1.75)
    assert detector.sure(1.75)
    answered(detector, "a")
    assert not detector.sure(1.75)


def test_the_best_witness_is_one_that_has_not_failed():
    """Then each in turn; a host that never answered is none."""
    detector = OutageDetector()
    assert detector.next_witness() is None
    answered(detector, "a", "b", "c")
    failed(detector, "a", "b", "d")
    assert detector.next_witness() == "http://c/"
    failed(detector, "c")
    assert [detector.next_witness() for _ in range(4)] == [
        f"http://{name}/" for name in ("a", "b", "c", "a")
    ]


def test_probes_become_rarer():
    """While out, probes wait twice as long each time, at most half a minute."""
    detector = OutageDetector()
    answered(detector, "a", "b")
    failed(detector, "a", "b")
    now, gaps = detector.next_probe_due, []
    for _ in range(12):
        detector.probed(now)
        gaps.append(detector.next_probe_due - now)
        now = detector.next_probe_due
    assert gaps == sorted(gaps)
    assert gaps[0] == 0.5
    assert gaps[-1] == 30.0


def test_memory_is_bounded():
    """A crawl over a million domains keeps a thousand witnesses."""
    detector = OutageDetector()
    answered(detector, *[str(i) for i in range(5000)])
    assert len(detector._answered) == 1024


def test_an_outage_is_not_believed_for_ever():
    """After a quarter of an hour the two hosts are blamed, and must answer before they are witnesses again."""
    detector = OutageDetector()
    answered(detector, "a", "b")
    failed(detector, "a", "b", now=10.0)
    assert detector.out(900.0)
    assert not detector.out(911.0)
    failed(detector, "a", "b", now=912.0)
    assert not detector.out(912.0)


def test_many_silent_witnesses_are_believed_longer():
    """A night without a network, on twenty hosts, is not blamed on them."""
    detector = OutageDetector()
    hosts = [str(i) for i in range(20)]
    answered(detector, *hosts)
    failed(detector, *hosts, now=0.0)
    assert detector.out(4 * 3600.0)
    assert not detector.out(5 * 3600.0)
